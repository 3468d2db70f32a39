"""The nouns every room speaks of. No framework, no IO."""
