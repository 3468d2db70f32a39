"""What turns texts into vectors: a model in this process, or a server."""
