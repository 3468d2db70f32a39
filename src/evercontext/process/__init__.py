"""Start child processes; no other package does."""
