"""Context of a model: layers of memory packed into a window that is never exceeded."""
