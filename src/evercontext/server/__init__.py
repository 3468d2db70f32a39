"""Serve other programs over REST and MCP; all capabilities are in the packages below."""
