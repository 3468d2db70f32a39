"""Open files of the user's tree; no other package does."""
