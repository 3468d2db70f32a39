"""Define a language model: it streams an answer to a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from evercontext.domain.message import Message, ToolCall
from evercontext.errors import BadReply

Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
"""How much a model that can reason thinks before it answers."""
StopReason = Literal["end", "tool_calls", "length", "filtered"]
UNFINISHED: tuple[StopReason, ...] = ("length", "filtered")
"""Ways an answer ends before it is whole."""
MOST_TOKENS = 10**12
"""More than any reply ever took: a larger number counts something else."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """Everything one model call needs."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stop: Sequence[str] = ()
    response_schema: Mapping[str, Any] | None = None
    """A JSON Schema the text must match, for providers that can enforce one."""
    effort: Effort | None = None
    """``None``: as much as the provider sees fit. Models that cannot reason are not asked to."""
    seconds_left: float | None = None
    """Time until the limit of the task, or ``None`` without one: no retry waits beyond it."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Facts a backend may use and others ignore (``root``, ``tree`` for a tiny model)."""


def _tokens(count: Any) -> int:
    return int(count) if isinstance(count, int | float) and 0 <= count <= MOST_TOKENS else 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; what cannot be a number of tokens counts as not told."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            object.__setattr__(self, name, _tokens(getattr(self, name)))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """A piece of reasoning that the provider shows; never part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """One whole tool call. Adapters fold a vendor's argument fragments before they yield it."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class EndDelta:
    """The last delta of every stream: why it ended and what it cost."""

    stop: StopReason = "end"
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Goes into the assistant message, verbatim, for providers that want it back."""


@dataclass(frozen=True, slots=True)
class NoticeDelta:
    """For a person: a retry, another model stepping in. Never part of the answer."""

    text: str
    restart: bool = False
    """True: what was streamed before is void, the answer begins again."""
    retry: bool = False
    """True: the request is made once more, by the same model or by another."""


Delta = TextDelta | ThoughtDelta | CallDelta | NoticeDelta | EndDelta


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model before it is asked anything."""

    name: str
    """Canonical ``provider:model``."""
    window: int
    """Context window in tokens, as far as known."""
    native_tools: bool = True
    """False: text only, tool calls go through the JSON protocol."""
    images: bool = False
    """True: messages may carry pictures."""
    local: bool = False
    tiny: bool = False
    """True for models that need the shortest prompt and the fewest tools."""
    notice: str | None = None
    """What the user should be told before trusting it."""

    @property
    def bare_name(self) -> str:
        """The name without the provider, as ``model_used`` stores it."""
        return self.name.split(":", 1)[-1]


class Model(Protocol):
    """The one seam to every language model."""

    @property
    def info(self) -> ModelInfo:
        """What is known of this model."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield deltas, ``EndDelta`` last; raise ``ModelProblem`` on failure; never half a call."""
        ...

    async def aclose(self) -> None:
        """Give back connections and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, folded from its deltas."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    stop: StopReason
    usage: Usage
    thought: str = ""
    model: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    def as_message(self) -> Message:
        """The assistant message that goes into the history."""
        return Message("assistant", self.text, self.tool_calls, extras=self.extras)


LARGEST_REPLY = 16_000_000
"""Characters of one answer, reasoning included."""


class ReplyBuilder:
    """Folds deltas into a ``Reply``; the loop feeds it while it streams to the screen."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: list[ToolCall] = []
        self._end = EndDelta()
        self._size = 0

    def add(self, delta: Delta) -> None:
        """Take one delta; ``BadReply`` once they are more than any answer is."""
        if isinstance(delta, TextDelta | ThoughtDelta):
            self._size += len(delta.text)
            if self._size > LARGEST_REPLY:
                raise BadReply(f"the model's answer is longer than {LARGEST_REPLY:,} characters")
        match delta:
            case TextDelta(text):
                self._text.append(text)
            case ThoughtDelta(text):
                self._thought.append(text)
            case CallDelta(call):
                self._calls.append(call)
            case NoticeDelta(restart=True):
                self._begin()
            case EndDelta():
                self._end = delta

    def reply(self) -> Reply:
        """Return what was gathered."""
        return Reply(
            text=_well_formed("".join(self._text)),
            tool_calls=tuple(self._calls),
            stop=self._end.stop,
            usage=self._end.usage,
            thought="".join(self._thought),
            model=self._end.model,
            extras=self._end.extras,
        )


def _well_formed(text: str) -> str:
    """Join characters that came in halves, and replace halves: nothing could keep them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Hear = Callable[[NoticeDelta], None]
"""Told what a person should know while an answer is waited for: a retry, another model."""


def unheard(notice: NoticeDelta) -> None:
    """Where nobody listens."""


async def complete(model: Model, request: Request, hear: Hear = unheard) -> Reply:
    """Ask and wait for the whole answer."""
    builder = ReplyBuilder()
    async for delta in model.stream(request):
        builder.add(delta)
        if isinstance(delta, NoticeDelta):
            hear(delta)
    return builder.reply()


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of texts, and what they cost."""

    vectors: Sequence[Sequence[float]]
    tokens: int = 0
    """Tokens that somebody charges for."""


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """Identifies the vectors: other name, other space."""
        ...

    @property
    def local(self) -> bool:
        """True if no text leaves this machine."""
        ...

    def price(self, tokens: int) -> float | None:
        """Return US dollars for so many tokens; ``None`` where no price is known."""
        ...

    async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
        """Return one vector per text; some models read a question otherwise than a document."""
        ...

    async def aclose(self) -> None:
        """Give connections and memory back."""
        ...
