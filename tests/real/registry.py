"""List the real programs that are tried against us, in the versions that are installed.

A new program is one entry of ``PROGRAMS``; a new version is one word of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BACKEND, JUDGE = "backend", "judge"
STDIO, HTTP, ROUTER, ACP = "MCP stdio", "MCP HTTP", "router", "ACP"
ENTRANCES = (BACKEND, JUDGE, STDIO, HTTP, ROUTER, ACP)
"""Where a program meets us: the columns of the matrix."""

CACHE_VARIABLE = "EVERCONTEXT_REAL_CACHE"


def _cache() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(chosen) if chosen else Path(caches) / "evercontext-real"


# Read when this module is imported: each test has a home of its own later.
CACHE = _cache()


@dataclass(frozen=True, slots=True)
class RealProgram:
    """A program of somebody else's: where it comes from, and how it is started."""

    name: str
    source: Literal["npm", "pypi", "bundled"]
    """``bundled``: comes with our own development installation."""
    package: str
    versions: tuple[str, ...]
    """The pinned ones, oldest first; the last is the newest that was tried."""
    command: str = ""
    """Its name among the installed commands; empty for a library."""
    newer_node: bool = False
    """Started by the Node of this registry, because that of the system may be too old."""


PROGRAMS = {
    program.name: program
    for program in (
        RealProgram("node", "npm", "node", ("22.23.3",), "node"),
        RealProgram(
            "codex",
            "npm",
            "@openai/codex",
            ("0.50.0", "0.98.0", "0.120.0", "0.166.0", "0.169.0"),
            "codex",
        ),
        RealProgram(
            "gemini", "npm", "@google/gemini-cli", ("0.33.0", "0.40.0", "0.61.0"), "gemini"
        ),
        RealProgram("claude", "npm", "@anthropic-ai/claude-code", ("2.1.326",), "claude"),
        RealProgram("opencode", "npm", "opencode-ai", ("1.18.33",), "opencode"),
        RealProgram("qwen", "npm", "@qwen-code/qwen-code", ("0.24.4",), "qwen", newer_node=True),
        RealProgram("acpx", "npm", "acpx", ("0.19.1",), "acpx", newer_node=True),
        RealProgram(
            "inspector",
            "npm",
            "@modelcontextprotocol/inspector",
            ("2.12.0",),
            "mcp-inspector",
            newer_node=True,
        ),
        RealProgram(
            "conformance",
            "npm",
            "@modelcontextprotocol/conformance",
            ("0.1.16", "0.2.0-alpha.12"),
            "conformance",
            newer_node=True,
        ),
        RealProgram("typescript-sdk", "npm", "@modelcontextprotocol/sdk", ("1.32.2",)),
        RealProgram("typescript-client", "npm", "@modelcontextprotocol/client", ("2.4.0",)),
        RealProgram(
            "everything",
            "npm",
            "@modelcontextprotocol/server-everything",
            ("2026.8.31",),
            "mcp-server-everything",
        ),
        RealProgram(
            "filesystem",
            "npm",
            "@modelcontextprotocol/server-filesystem",
            ("2026.8.31",),
            "mcp-server-filesystem",
        ),
        RealProgram(
            "memory",
            "npm",
            "@modelcontextprotocol/server-memory",
            ("2026.8.31",),
            "mcp-server-memory",
        ),
        RealProgram(
            "sequential-thinking",
            "npm",
            "@modelcontextprotocol/server-sequential-thinking",
            ("2026.8.31",),
            "mcp-server-sequential-thinking",
        ),
        RealProgram("playwright", "npm", "@playwright/mcp", ("0.0.83",), "playwright-mcp"),
        RealProgram("git", "pypi", "mcp-server-git", ("2026.10.19",), "mcp-server-git"),
        RealProgram("time", "pypi", "mcp-server-time", ("2026.10.19",), "mcp-server-time"),
        RealProgram("fetch", "pypi", "mcp-server-fetch", ("2026.10.24",), "mcp-server-fetch"),
        RealProgram("litellm", "pypi", "litellm[proxy]", ("1.105.0",), "litellm"),
        RealProgram("llama.cpp", "bundled", "xllamacpp", ("2026.10.11549",)),
    )
}
