"""Look up a model's context window by its name, without a request."""

from __future__ import annotations

import re

DEFAULT_WINDOW = 32_768
"""For unknown names: small enough not to overrun, large enough to work."""

SMALL_WINDOW = 8_000
"""Tokens below which all tools and their rules would leave no space for the work."""

_WINDOWS = [
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-[56]", 400_000),
    (r"gpt-4o|gpt-4-turbo", 128_000),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"gpt-oss", 131_072),
    (r"o\d", 200_000),
    (r"claude-haiku-4", 200_000),
    (r"claude-(opus|sonnet)-4-5", 200_000),
    (r"claude-(opus|sonnet)-4-[678]", 1_000_000),
    (r"claude-\w+-5", 1_000_000),
    (r"claude", 200_000),
    (r"gemini", 1_000_000),
    (r"deepseek", 128_000),
]
_KNOWN = [(re.compile(pattern, re.IGNORECASE), tokens) for pattern, tokens in _WINDOWS]


def window(model: str, override: int | None = None) -> int:
    """Return the context window of ``model`` in tokens; ``override`` wins."""
    if override:
        return override
    return _by_name(model) or DEFAULT_WINDOW


def is_known(model: str) -> bool:
    """Tell whether the name alone says how large the window is."""
    return _by_name(model) is not None


def is_small(tokens: int) -> bool:
    """Tell whether a window needs the short prompt and few tools."""
    return tokens < SMALL_WINDOW


def _by_name(model: str) -> int | None:
    # A gateway's name may carry the vendor in front: openrouter's "openai/gpt-4.1".
    bare = model.rsplit("/", 1)[-1]
    return next((tokens for pattern, tokens in _KNOWN if pattern.match(bare)), None)
