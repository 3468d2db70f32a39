"""Short ways to call the agent, as users of other agents type them.

``evercontext "do this"``, ``-p``, ``-c``, ``-r`` and ``-m`` open the chat; ``help`` and ``version``
are words as well as options. One unknown word stays a mistyped command and is never a task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_OWN_OPTIONS = frozenset({"-h", "--help", "-V", "--version"})


def expand(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the command line with its command written out."""
    if not words:
        return []
    first, *rest = words
    if first in commands or first in _OWN_OPTIONS:
        return list(words)
    if first == "help":
        return [*rest, "--help"]
    if first == "version":
        return ["--version", *rest]
    if first.startswith("-") or is_task(first):
        return ["chat", *words]
    return list(words)


def is_task(text: str) -> bool:
    """Tell a task from a mistyped command: it has more than one word, or is no single name."""
    return len(text.split()) > 1 or (bool(text.strip()) and not text.strip().isascii())
