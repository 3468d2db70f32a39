"""The chat: a person, a conversation, and the terminal between them."""
