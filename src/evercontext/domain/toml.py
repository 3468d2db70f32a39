"""Read TOML from untrusted files."""

from __future__ import annotations

import tomllib
from typing import Any

MOST_DOTS = 200
"""In one line. The parser's work grows with the square of a key's parts, and a key is one line."""


def read_toml(text: str) -> dict[str, Any]:
    """Parse, in time that grows with the length; ``ValueError`` says what is wrong."""
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise ValueError(f"a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
