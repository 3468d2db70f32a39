"""Tool output is bounded when it is made, not when the context overflows."""

from __future__ import annotations


def truncate(text: str, longest: int) -> tuple[str, bool]:
    """Keep the beginning and the end; say how much is missing between them."""
    if len(text) <= longest:
        return text, False
    head, tail = longest * 2 // 3, longest // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n… [{missing} characters left out] …\n{text[-tail:]}", True
