"""What outlives a conversation: sessions, messages, memories."""
