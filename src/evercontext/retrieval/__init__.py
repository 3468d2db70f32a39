"""One retrieval library for code, memories and tools: pure, typed, incremental."""
