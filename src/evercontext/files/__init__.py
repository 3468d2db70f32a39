"""The user's tree: the only room that opens a file of it."""
