"""Questions about the structure of code: definitions, references, callers, importers, outlines."""
