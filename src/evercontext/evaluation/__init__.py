"""Documents, judged by a rubric until they are good."""
