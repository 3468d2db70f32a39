"""Add tool calls to models that only write text, by Hermes JSON.

Nothing of a reply is shown or run before all of it is valid. An invalid one is sent back once with
the reason; the second in a row is ``BadReply``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from evercontext.domain.lenient_json import NotJson
from evercontext.domain.message import Message, assistant, system, user
from evercontext.domain.model import (
    CallDelta,
    Delta,
    EndDelta,
    Model,
    ModelInfo,
    NoticeDelta,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
)
from evercontext.errors import AnswerFiltered, BadReply, LimitReached
from evercontext.models import json_reply
from evercontext.models.model_stream import open_stream
from evercontext.models.tool_schema import for_model

MAX_REPLY = 2_000_000
"""Characters kept of one reply: twice the largest file, so that escapes fit."""
_SHOWN_BACK = 2_000

_RULES = """\
Answer with exactly one JSON object and nothing else. Its only keys are:
- "thought": a short note to yourself (optional)
- "tool_calls": a list of {"name": ..., "parameters": {...}}, run in order (optional)
- "final_answer": your answer to the user, once everything is done (optional)
To use tools, give tool_calls and wait for the results. When nothing is left to do, give
final_answer without tool_calls.
Examples:
{"thought": "I need the file.", "tool_calls": [{"name": "NAME", "parameters": {"KEY": "VALUE"}}]}
{"final_answer": "Done: ..."}
Tools:
"""


class JsonProtocol:
    """Wraps a text-only model so that it can call tools (E13-E16)."""

    def __init__(self, inner: Model, *, tool_role: bool = True) -> None:
        """``tool_role`` is False for models whose chat template drops that role."""
        self._inner = inner
        self._tool_role = tool_role

    @property
    def info(self) -> ModelInfo:
        """What is known of the wrapped model; it stays a model without native tools."""
        return replace(self._inner.info, native_tools=False)

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._inner.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield the thought, then the calls or, without calls, the final answer."""
        prompted = self._prompted(request)
        if not request.tools:
            async with open_stream(self._inner, prompted) as deltas:
                async for delta in deltas:
                    yield delta
            return
        spent = Usage()
        for last_try in (False, True):
            written = _Written()
            async with aclosing(_listen(self._inner, prompted, written)) as shown:
                async for delta in shown:
                    yield delta
            spent += written.end.usage
            try:
                reply = written.parsed()
            except NotJson as error:
                if last_try and written.end.stop == "length":
                    raise LimitReached(
                        f"the answer of {self.info.name} was cut off at its output limit, twice",
                        fix="Ask for less at once, or use a model with a larger output",
                    ) from error
                if last_try and written.end.stop == "filtered":
                    raise AnswerFiltered(
                        f"the answer of {self.info.name} was withheld, twice",
                        fix="Say the task in other words, or use another model",
                    ) from error
                if last_try:
                    raise BadReply(
                        f"{self.info.name} did not answer in the JSON it was asked for,"
                        f" twice in a row: {error}",
                        fix="Try a stronger model, or a smaller task",
                    ) from error
                yield NoticeDelta(f"Not the JSON that was asked for ({error}); asking once more")
                prompted = _corrected(prompted, written.text, str(error))
                continue
            for delta in _deltas(reply, replace(written.end, usage=spent)):
                yield delta
            return

    def _prompted(self, request: Request) -> Request:
        messages = [self._as_text(message, request) for message in request.messages]
        if not request.tools:
            return replace(request, messages=messages)
        rules = describe(request.tools)
        if messages and messages[0].role == "system":
            messages[0] = system(f"{messages[0].content}\n\n{rules}")
        else:
            messages.insert(0, system(rules))
        # The tools stay in the request: a backend may use them to constrain what is written.
        return replace(request, messages=messages, response_schema=json_reply.schema(request.tools))

    def _as_text(self, message: Message, request: Request) -> Message:
        if message.role == "assistant" and (request.tools or message.tool_calls):
            return assistant(_own_words(message))
        if message.role == "tool":
            return self._result(message)
        return message

    def _result(self, message: Message) -> Message:
        name = message.tool_name or "tool"
        if not self._tool_role:
            return user(f"Result of {name}:\n{message.content}")
        return replace(message, content=f"Result of {name}:\n{message.content}")


class _Written:
    """What the inner model wrote, bounded."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self.end = EndDelta()

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def too_long(self) -> bool:
        return self._size > MAX_REPLY

    def add(self, text: str) -> None:
        self._parts.append(text[: MAX_REPLY + 1 - self._size])
        self._size += len(text)

    def parsed(self) -> json_reply.JsonReply:
        if self.too_long:
            raise NotJson(f"the reply is longer than {MAX_REPLY} characters")
        try:
            return json_reply.parse(self.text)
        except NotJson as error:
            if self.end.stop == "length":
                raise NotJson("the reply was cut off at the length limit") from error
            raise


async def _listen(model: Model, request: Request, written: _Written) -> AsyncGenerator[Delta, None]:
    """Fill ``heard``; yield only what may be shown before the reply is known to be valid."""
    async with open_stream(model, request) as deltas:
        async for delta in deltas:
            match delta:
                case TextDelta(text):
                    written.add(text)
                    if written.too_long:
                        return
                case EndDelta():
                    written.end = delta
                case NoticeDelta():
                    if delta.restart:
                        written.forget()
                    yield delta
                case ThoughtDelta():
                    yield delta


def _own_words(message: Message) -> str:
    thought = message.extras.get("hermes", {}).get("thought", "")
    if message.tool_calls:
        return json_reply.render(thought or message.content, message.tool_calls, "")
    return json_reply.render(thought, (), message.content)


def _corrected(request: Request, bad: str, reason: str) -> Request:
    shown = bad if len(bad) <= _SHOWN_BACK else f"{bad[:_SHOWN_BACK]} [cut]"
    correction = user(
        f"That was not usable: {reason}. Nothing was run. Answer again with exactly one JSON"
        f" object whose only keys are {', '.join(json_reply.KEYS)}, without any other text."
    )
    return replace(request, messages=[*request.messages, assistant(shown or "(empty)"), correction])


def _deltas(reply: json_reply.JsonReply, end: EndDelta) -> list[Delta]:
    deltas: list[Delta] = [ThoughtDelta(reply.thought)] if reply.thought else []
    extras: dict[str, Any] = {**end.extras, "hermes": {"thought": reply.thought}}
    if not reply.calls:
        answer: list[Delta] = [TextDelta(reply.answer)] if reply.answer else []
        return [*deltas, *answer, replace(end, stop="end", extras=extras)]
    if reply.answer:
        # Given before the calls have run, so it can only be an expectation.
        deltas.append(ThoughtDelta(f"Expected: {reply.answer}"))
    deltas += [CallDelta(call) for call in reply.calls]
    return [*deltas, replace(end, stop="tool_calls", extras=extras)]


def describe(tools: Sequence[ToolSpec]) -> str:
    """Return the protocol's rules and the tools, as the model reads them."""
    return _RULES + "\n".join(_describe(tool) for tool in tools)


def _describe(tool: ToolSpec) -> str:
    required = tool.arguments.get("required", ())
    lines = [f"- {tool.name}: {' '.join(tool.description.split())}"]
    for name, about in tool.arguments.get("properties", {}).items():
        need = "required" if name in required else "optional"
        lines.append(f"    {name} ({_kind(about)}, {need}){_note(about)}")
    return "\n".join(lines)


def _kind(about: Mapping[str, Any]) -> str:
    if "enum" in about:
        return "one of " + ", ".join(
            json.dumps(value, ensure_ascii=False) for value in about["enum"]
        )
    kind = about.get("type")
    if kind in ("string", "integer", "number", "boolean"):
        return str(kind)
    # Nested shapes are given whole: a summary of them would be guessed at.
    bare = {
        key: value for key, value in for_model(about).items() if key not in ("description", "title")
    }
    return json.dumps(bare, ensure_ascii=False) if bare else "any"


def _note(about: Mapping[str, Any]) -> str:
    note = " ".join(str(about.get("description", "")).split())
    return f": {note}" if note else ""
