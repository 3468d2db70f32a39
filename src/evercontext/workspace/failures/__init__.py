"""What checks say went wrong, read into one shape whatever tool said it."""
