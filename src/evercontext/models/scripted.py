"""Play a script as a model: JSONL, one turn per line.

::

    {"text": "All done."}
    {"tool_calls": [{"name": "readFile", "arguments": {"path": "a.py"}}], "usage": {...}}
    {"raw": "{\\"final_answer\\": \\"from a text-only model\\"}"}
    {"error": "rate_limited"}
    {"text": "an answer that ended too ear", "stop": "length"}
    {"when": "task two", "text": "only for a request that mentions it"}

A request takes the first unused turn whose ``when`` (a pattern searched in all its messages) and
``role`` (``hints["role"]`` of the request, such as ``planner``) fit. A turn with neither answers
anything but what is asked in the background (``summary``). ``raw`` goes through the JSON
protocol, with its one retry, as if a text-only model had written it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext import errors
from evercontext.domain.message import ToolCall, new_call_id
from evercontext.domain.model import (
    CallDelta,
    Delta,
    EndDelta,
    ModelInfo,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from evercontext.errors import (
    ConfigError,
    EverContextError,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    by_code,
)
from evercontext.models import json_reply
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.model_stream import open_stream

WINDOW = 128_000
_ANSWERS = ("text", "tool_calls", "raw", "error")
_KEYS = {"role", "when", "thought", "usage", "stop", *_ANSWERS}
_STOPS: tuple[StopReason, ...] = ("end", "length", "filtered")
_PIECE = 24


@dataclass(slots=True)
class ScriptedTurn:
    """One line of a script."""

    role: str | None = None
    when: re.Pattern[str] | None = None
    thought: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: str | None = None
    error: EverContextError | None = None
    usage: Usage = field(default_factory=Usage)
    stop: StopReason = "end"
    used: bool = False

    def answers(self, request: Request) -> bool:
        """True if this turn is unused and meant for ``request``."""
        if self.used or (self.role and self.role != request.hints.get("role")):
            return False
        if self.when is None:
            # What is asked in the background comes at no certain time: only a turn that was
            # written for it answers, so that the others keep their order.
            return bool(self.role) or not request.hints.get("background")
        return any(self.when.search(message.content) for message in request.messages)


class ScriptedModel:
    """Plays the turns of one script, each once."""

    def __init__(self, turns: list[ScriptedTurn], *, source: str = "script") -> None:
        self._turns = turns
        self._source = source
        self._text_only = JsonProtocol(_TextSide(self))

    @classmethod
    def from_file(cls, path: Path) -> ScriptedModel:
        """Read a script; a line that makes no sense is named."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelUnknown(
                f"cannot read the script {path}: {_reason(error)}",
                fix="Name a JSONL file after scripted:",
            ) from error
        lines = enumerate(text.splitlines(), start=1)
        turns = [_turn(line, f"{path}, line {number}") for number, line in lines if line.strip()]
        return cls(turns, source=str(path))

    @property
    def info(self) -> ModelInfo:
        """A script with ``raw`` turns stands for a text-only model."""
        native = all(turn.raw is None for turn in self._turns)
        return ModelInfo(f"scripted:{self._source}", WINDOW, native_tools=native, local=True)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Play the next fitting turn."""
        if self._next(request).raw is not None:
            async with open_stream(self._text_only, request) as deltas:
                async for delta in deltas:
                    yield delta
            return
        turn = self.take(request)
        if turn.thought:
            yield ThoughtDelta(turn.thought)
        for start in range(0, len(turn.text), _PIECE):
            yield TextDelta(turn.text[start : start + _PIECE])
        for call in turn.calls:
            yield CallDelta(call)
        stop: StopReason = "tool_calls" if turn.calls else turn.stop
        yield EndDelta(stop, turn.usage, self.info.bare_name)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def take(self, request: Request) -> ScriptedTurn:
        """Use up the next fitting turn; raise its error if it stands for one."""
        turn = self._next(request)
        turn.used = True
        if turn.error is not None:
            raise turn.error
        return turn

    def _next(self, request: Request) -> ScriptedTurn:
        turn = next((turn for turn in self._turns if turn.answers(request)), None)
        if turn is None:
            used = sum(turn.used for turn in self._turns)
            raise ModelRefused(
                f"the script {self._source} has no turn left for this request"
                f" ({used} of {len(self._turns)} used)",
                fix="Add a turn to it",
            )
        return turn


class _TextSide:
    """The same script, seen as a model that only writes text."""

    def __init__(self, script: ScriptedModel) -> None:
        self._script = script

    @property
    def info(self) -> ModelInfo:
        return self._script.info

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        turn = self._script.take(request)
        written = turn.raw
        if written is None:
            written = json_reply.render(turn.thought, turn.calls, turn.text)
        yield TextDelta(written)
        yield EndDelta(turn.stop, turn.usage, self.info.bare_name)

    async def aclose(self) -> None:
        pass


def _turn(line: str, where: str) -> ScriptedTurn:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where}: not valid JSON") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: a turn is a JSON object")
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}")
    if not set(fields) & set(_ANSWERS):
        raise ConfigError(f"{where}: a turn needs one of {', '.join(_ANSWERS)}")
    try:
        return _built(fields)
    except (TypeError, ValueError, AttributeError, KeyError, re.error) as error:
        raise ConfigError(f"{where}: {error}") from error


def _built(fields: Mapping[str, Any]) -> ScriptedTurn:
    role = fields.get("role")
    error = fields.get("error")
    return ScriptedTurn(
        # Recorded conversations carry "assistant" on every line: it chooses nothing.
        role=None if role == "assistant" else role,
        when=re.compile(fields["when"]) if fields.get("when") else None,
        thought=fields.get("thought", ""),
        text=_string(fields.get("text", "")),
        calls=tuple(_call(item) for item in fields.get("tool_calls", ())),
        raw=None if fields.get("raw") is None else _string(fields["raw"]),
        error=None if error is None else _error(error),
        usage=Usage(**fields.get("usage", {})),
        stop=_STOPS[_STOPS.index(fields.get("stop", "end"))],
    )


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text and raw must be strings")
    return value


def _call(item: Mapping[str, Any]) -> ToolCall:
    arguments = item.get("arguments", item.get("parameters", {}))
    call_id = item.get("id") or new_call_id()
    if isinstance(arguments, str):
        return ToolCall(call_id, item["name"], {}, malformed=arguments)
    return ToolCall(call_id, item["name"], dict(arguments))


def _error(about: str | Mapping[str, Any]) -> EverContextError:
    fields: dict[str, Any] = {"code": about} if isinstance(about, str) else dict(about)
    kind = _error_kind(fields["code"])
    message = fields.get("message", f"the script says {kind.code}")
    if issubclass(kind, ModelUnavailable):
        return kind(message, retry_after=fields.get("retry_after"))
    return kind(message)


def _error_kind(name: str) -> type[EverContextError]:
    """Find an error by its code (``rate_limited``) or its class (``RateLimited``)."""
    kind = getattr(errors, name, None) or by_code(name)
    if name != kind.code and name != kind.__name__:
        raise ValueError(f"no error is called {name!r}")
    assert issubclass(kind, EverContextError)
    return kind


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or "unreadable") if isinstance(error, OSError) else "not UTF-8"
