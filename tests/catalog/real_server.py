"""An MCP server made with the official SDK, with everything a server may have. Run as a program.

real_server.py stdio | http PORT | sse PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("real", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context[Any, Any]) -> str:
    """Count slowly, and say how far it is."""
    for number in range(to):
        await ctx.report_progress(number + 1, to, f"at {number + 1}")
        await asyncio.sleep(0.05)
    return f"counted to {to}"


@server.resource("memo://today")
def today() -> str:
    """What is to be done today."""
    return "buy milk"


@server.resource("memo://day/{day}")
def day(day: str) -> str:
    """What was done on a day."""
    return f"on {day}: nothing"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


def main() -> None:
    """Serve as told."""
    if sys.argv[1] == "stdio":
        server.run("stdio")
    elif sys.argv[1] == "http":
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
