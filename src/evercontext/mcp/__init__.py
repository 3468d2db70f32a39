"""The Model Context Protocol: messages, revisions, servers and clients over every transport."""
