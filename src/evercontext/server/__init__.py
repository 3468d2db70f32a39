"""The doors for other programs: REST and MCP. No capability lives here, only ways in."""
