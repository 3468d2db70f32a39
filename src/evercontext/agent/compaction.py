"""Compact a long conversation into a summary and its newest part.

The originals stay in the store. Instructions are never part of it: they are in the system prompt
of every request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files

from evercontext.agent.valid_history import split_for_compaction
from evercontext.context.conversation_window import Window, fit
from evercontext.domain.message import Message, system, user
from evercontext.domain.model import UNFINISHED, Model, Reply, Request, complete
from evercontext.errors import LimitReached

START_AT = 0.8
"""Share of the room at which a conversation is compacted by itself."""
NEWEST_MESSAGES = 6
MUST_FREE = 0.2
_LONGEST_LINE = 4_000


def is_due(messages: Sequence[Message], window: Window, reserved: int = 0) -> bool:
    """True once the conversation fills most of its room."""
    return sum(map(window.cost, messages)) > START_AT * (window.room(()) - reserved)


async def compact(
    messages: Sequence[Message],
    model: Model,
    window: Window,
    focus: str = "",
    on_reply: Callable[[Reply], Awaitable[None]] | None = None,
) -> list[Message]:
    """Return the conversation with its older part as a handover; ``on_reply`` counts its cost.

    ``LimitReached`` if that would free too little: compacting again and again helps nobody.
    """
    older, newest = split_for_compaction(messages, NEWEST_MESSAGES)
    if not older:
        raise LimitReached("there is nothing old enough to compact", fix="Go on, or start afresh")
    reply = await _handover(older, model, window, focus)
    if on_reply:
        await on_reply(reply)
    if reply.stop in UNFINISHED:
        # Half a handover would stand for the whole conversation.
        raise LimitReached(
            "the handover of the conversation did not come whole",
            fix="Go on, or use a model with a larger output",
        )
    digest = reply.text.strip() or "(nothing was handed over)"
    note = user(f"[Handover of the earlier conversation, written by you]\n{digest}")
    before, after = (sum(map(window.cost, part)) for part in (messages, [note, *newest]))
    if after > before * (1 - MUST_FREE):
        raise LimitReached(
            f"compacting would free only {max(0, before - after)} of {before} tokens",
            fix="Start a new session, or use a model with a larger window",
        )
    return [note, *newest]


async def _handover(older: Sequence[Message], model: Model, window: Window, focus: str) -> Reply:
    prompt = (files("evercontext.agent") / "prompts" / "compaction.md").read_text("utf-8")
    instructions = f"{prompt}\nPay special attention to: {focus}" if focus else prompt
    lines = [user(_as_line(message)) for message in older]
    request = fit([system(instructions), *lines, user("Write the handover now.")], (), window)
    transcript = "\n".join(message.content for message in request[1:-1])
    messages = [system(instructions), user(f"{transcript}\n\nWrite the handover now.")]
    return await complete(model, Request(messages, temperature=0.0, hints={"role": "compaction"}))


def _as_line(message: Message) -> str:
    calls = ", ".join(f"{call.name}({dict(call.arguments)})" for call in message.tool_calls)
    text = (
        message.content
        if len(message.content) <= _LONGEST_LINE
        else (f"{message.content[:_LONGEST_LINE]}…")
    )
    return f"{message.role}: {text}{f' [calls {calls[:_LONGEST_LINE]}]' if calls else ''}"
