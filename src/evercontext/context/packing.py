"""Choose the parts to leave out when a context does not fit; a pure function.

In order: the summary; memories from the least similar, down to one; conversation from the oldest,
down to two; the last memory; the rest of the conversation. Never the system prompt, never the
user's message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from evercontext.context.context_request import ContextOverflowError

KEPT_MEMORIES = 1
KEPT_MESSAGES = 2


@dataclass(frozen=True, slots=True)
class Selection:
    """How much of each layer is taken: memories from the best, messages from the newest."""

    summary: bool
    memories: int
    messages: int


def pack(complete: Selection, cost: Callable[[Selection], int], limit: int) -> Selection:
    """Return the first selection in the order above whose cost is within ``limit``."""
    for selection in candidates(complete):
        if cost(selection) <= limit:
            return selection
    least = Selection(False, 0, 0)
    raise ContextOverflowError(
        f"system prompt and user message need {cost(least)} tokens, the window has {limit}"
    )


def candidates(complete: Selection) -> Iterator[Selection]:
    """Every selection from the whole to the least, each with one thing less."""
    yield complete
    left = complete
    if left.summary:
        left = replace(left, summary=False)
        yield left
    for floor_memories, floor_messages in (
        (KEPT_MEMORIES, left.messages),
        (KEPT_MEMORIES, KEPT_MESSAGES),
        (0, KEPT_MESSAGES),
        (0, 0),
    ):
        while left.memories > floor_memories:
            left = replace(left, memories=left.memories - 1)
            yield left
        while left.messages > floor_messages:
            left = replace(left, messages=left.messages - 1)
            yield left
