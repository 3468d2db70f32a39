"""What a model is shown: layers of memory packed into a window that is never exceeded."""
