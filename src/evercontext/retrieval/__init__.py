"""The ranking kernel of code search, memory and tool search: pure, typed, incremental."""
