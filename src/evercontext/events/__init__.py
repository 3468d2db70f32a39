"""The event log: the only truth of what happened."""
