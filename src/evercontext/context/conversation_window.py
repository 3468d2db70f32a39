"""Fit a conversation with tools into a model's window; pure, and never over it.

What goes first: old tool output, oldest first, the newest part of the conversation spared; then
whole old exchanges; then the middle of the largest results that are left. Never the system prompt,
never the last thing the user said. A call and its result stay or go together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evercontext.context.token_estimate import PER_MESSAGE, PER_REPLY, TokenEstimator
from evercontext.domain.message import Message, user
from evercontext.domain.model import ToolSpec
from evercontext.domain.sent_tool_output import Ranges, Sent, alike, joined
from evercontext.errors import ContextTooLong

SPARED = 0.4
"""Share of the room whose newest messages keep their tool output as long as possible."""
_SMALL = 200
_CUT = "… [{missing} characters left out to fit the window; read it again if you need them] …"

PER_IMAGE = 1_600
"""Tokens of a picture, about as many as providers charge for a large one."""


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a request may have, and the estimator that counts them."""

    tokens: int
    reserve: int
    """Kept free for the answer."""
    estimator: TokenEstimator

    def room(self, tools: Sequence[ToolSpec]) -> int:
        """Tokens left for messages beside the answer and the tools' schemas."""
        return self.tokens - self.reserve - PER_REPLY - sum(map(self._tool, tools))

    def learn(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], real_tokens: int
    ) -> int:
        """Correct the estimate by the provider's count; return the estimate before."""
        texts = [_text(message) for message in messages] + [_schema(tool) for tool in tools]
        estimated = self.estimator.estimate(texts)
        if real_tokens > 0:
            self.estimator.learn(texts, real_tokens)
        return estimated

    def cost(self, message: Message) -> int:
        """Tokens of one message with its calls."""
        pictures = PER_IMAGE * len(message.images)
        return PER_MESSAGE + pictures + self.estimator.count(_text(message))

    def _tool(self, tool: ToolSpec) -> int:
        return PER_MESSAGE + self.estimator.count(_schema(tool))


def _text(message: Message) -> str:
    calls = [c.name + json.dumps(dict(c.arguments), default=str) for c in message.tool_calls]
    return message.content + "".join(calls)


def _schema(tool: ToolSpec) -> str:
    schema = json.dumps(dict(tool.arguments), ensure_ascii=False, default=str)
    return f"{tool.name} {tool.description} {schema}"


@dataclass(frozen=True, slots=True)
class Fitted:
    """Messages as they are sent, and the part of each original that is sent."""

    messages: list[Message]
    sent: list[Sent]


def fit(messages: Sequence[Message], tools: Sequence[ToolSpec], window: Window) -> list[Message]:
    """Return the messages as they may be sent; ``ContextTooLong`` if nothing can be left out."""
    return _fitted(messages, tools, window).messages


def fit_and_tell(
    messages: Sequence[Message], tools: Sequence[ToolSpec], window: Window | None
) -> Fitted:
    """Return the messages as they may be sent, and the part of each that is sent."""
    if window is None:
        return Fitted(
            list(messages), [Sent(message, _all(message.content)) for message in messages]
        )
    draft = _fitted(messages, tools, window)
    staying = {id(old): new for old, new in zip(draft.originals, draft.messages, strict=True)}
    return Fitted(
        draft.messages,
        [Sent(message, _shown(message, staying.get(id(message)))) for message in messages],
    )


def _shown(message: Message, sent: Message | None) -> Ranges | None:
    if sent is None:
        return None
    if sent.content == message.content:
        return _all(message.content)
    original, rest = (_shape(text).get("result", "") for text in (message.content, sent.content))
    if not rest:
        return ()
    head = alike(original, rest)
    tail = alike(original[head:][::-1], rest[head:][::-1])
    return joined([(0, head), (len(original) - tail, len(original))])


def _all(content: str) -> Ranges:
    # Whatever it is encoded in, the result is not longer than that.
    return ((0, len(content)),)


def _shape(content: str) -> dict[str, Any]:
    """The result of a call as the model reads it; empty if it is not in that shape."""
    try:
        shape = json.loads(content)
    except ValueError:
        return {}
    fits = isinstance(shape, dict) and isinstance(shape.get("result"), str)
    return shape if fits else {}


def _fitted(
    messages: Sequence[Message], tools: Sequence[ToolSpec], window: Window
) -> _FittingMessages:
    draft = _FittingMessages(list(messages), window, window.room(tools))
    for make_smaller in (_prune_old_results, _drop_old_exchanges, _cut_largest):
        if draft.fits:
            break
        make_smaller(draft)
    if not draft.fits:
        raise ContextTooLong(
            f"the prompt needs {draft.total} tokens, the window has room for {draft.room}",
            fix="Use a model with a larger window, or ask for less at once",
        )
    return draft


class _FittingMessages:
    """Messages with their costs, counted once each."""

    def __init__(self, messages: list[Message], window: Window, room: int) -> None:
        self.messages, self.room = messages, room
        self.originals = list(messages)
        self._cost: Callable[[Message], int] = window.cost
        self.costs = [window.cost(message) for message in messages]

    @property
    def total(self) -> int:
        return sum(self.costs)

    @property
    def fits(self) -> bool:
        return self.total <= self.room

    def change(self, index: int, content: str) -> None:
        self.messages[index] = replace(self.messages[index], content=content)
        self.costs[index] = self._cost(self.messages[index])

    def remove(self, start: int, end: int, note: Message) -> None:
        self.messages[start:end] = self.originals[start:end] = [note]
        self.costs[start:end] = [self._cost(note)]

    def last_user(self) -> int:
        roles = [message.role for message in self.messages]
        return len(roles) - 1 - roles[::-1].index("user") if "user" in roles else 0


def _prune_old_results(draft: _FittingMessages) -> None:
    spared = draft.room * SPARED
    newest = 0.0
    first_spared = len(draft.messages)
    # The results the model is waiting for are cut at worst, never taken away whole.
    while first_spared and draft.messages[first_spared - 1].role == "tool":
        first_spared -= 1
        newest += draft.costs[first_spared]
    while first_spared > 1 and newest + draft.costs[first_spared - 1] <= spared:
        first_spared -= 1
        newest += draft.costs[first_spared]
    for index, message in enumerate(draft.messages[:first_spared]):
        if draft.fits:
            return
        if message.role == "tool" and len(message.content) > _SMALL:
            draft.change(index, _CUT.format(missing=len(message.content)))


def _drop_old_exchanges(draft: _FittingMessages) -> None:
    """Leave out the oldest exchanges whole; one note says that they were there."""
    dropped = 0
    start = _after_system(draft)
    while not draft.fits:
        end = _end_of_exchange(draft.messages, start + bool(dropped))
        if end is None or end > draft.last_user():
            return
        dropped += 1
        note = user(f"[{dropped} earlier exchanges of this conversation are left out here]")
        draft.remove(start, end, note)


def _after_system(draft: _FittingMessages) -> int:
    return next((i for i, m in enumerate(draft.messages) if m.role != "system"), 0)


def _end_of_exchange(messages: Sequence[Message], start: int) -> int | None:
    """An exchange begins with the user and ends before the user speaks again."""
    for index in range(start + 1, len(messages)):
        if messages[index].role == "user":
            return index
    return None


def _cut_largest(draft: _FittingMessages) -> None:
    """Halve the largest result until it fits, or until none is large any more."""
    while not draft.fits:
        results = [i for i, m in enumerate(draft.messages) if m.role == "tool"]
        large = [i for i in results if len(draft.messages[i].content) > _SMALL]
        if not large:
            return
        index = max(large, key=lambda i: draft.costs[i])
        draft.change(index, _shorter(draft.messages[index].content))


def _shorter(content: str) -> str:
    """Cut inside the result, so that its frame stays readable."""
    shape = _shape(content)
    if not shape:
        return _middle_out(content)
    cut = json.dumps(shape | {"result": _middle_out(shape["result"])}, ensure_ascii=False)
    return cut if len(cut) < len(content) else content[:_SMALL]


def _middle_out(text: str) -> str:
    """Leave out the middle, at the ends of lines where there are any."""
    keep = len(text) // 4
    end, start = keep, len(text) - keep
    if (last := text.rfind("\n", keep // 2, end)) >= 0:
        end = last + 1
    if (first := text.find("\n", start, len(text) - keep // 2)) >= 0:
        start = first + 1
    cut = f"{text[:end]}{_CUT.format(missing=start - end)}{text[start:]}"
    return cut if len(cut) < len(text) else text[:_SMALL]


def describe(
    messages: Sequence[Message], tools: Sequence[ToolSpec], window: Window
) -> dict[str, Any]:
    """Return the tokens in the window by role, for people."""
    used = window.tokens - window.reserve - window.room(tools)
    by_role: dict[str, int] = {"tools": used}
    for message in messages:
        by_role[message.role] = by_role.get(message.role, 0) + window.cost(message)
    return {"window": window.tokens, "reserve": window.reserve, "used": by_role}
