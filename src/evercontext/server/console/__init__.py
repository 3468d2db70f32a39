"""The web console: pages over the event log and the store, for the person at this machine."""
