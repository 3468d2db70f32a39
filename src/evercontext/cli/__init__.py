"""The terminal: one reader of the event log, and one way into the toolbox."""
