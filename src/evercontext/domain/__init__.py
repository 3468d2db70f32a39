"""Define the types that every package shares. No framework, no IO."""
