"""The user's tree as tools: list, read, write, edit, search, undo."""
