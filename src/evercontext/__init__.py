"""EverContext: a local-first coding agent and context engine."""

__version__ = "0.1.0"
