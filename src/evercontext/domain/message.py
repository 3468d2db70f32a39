"""Define messages between a user, a model and its tools."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asks for. ``arguments`` is what it wrote, parsed but not validated."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    malformed: str | None = None
    """The raw text, where it could not be parsed as a JSON object; ``arguments`` is empty then."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that goes with a message, to models that see."""

    name: str
    media_type: str
    data: bytes = field(repr=False)

    @property
    def base64(self) -> str:
        """Return the bytes as providers take them."""
        return b64encode(self.data).decode("ascii")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation, in the shape every provider can be given."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """On a ``tool`` message: the call that this is the result of."""
    tool_name: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What one provider needs back verbatim (reasoning signatures and the like)."""
    images: tuple[Image, ...] = ()
    """Sent while the conversation is open; a session that is taken up again has their names."""


def system(content: str) -> Message:
    """Return a system message."""
    return Message("system", content)


def user(content: str) -> Message:
    """Return a user message."""
    return Message("user", content)


def assistant(content: str, tool_calls: tuple[ToolCall, ...] = ()) -> Message:
    """Return an assistant message."""
    return Message("assistant", content, tool_calls)


def tool_result(call: ToolCall, content: str) -> Message:
    """Return the message that answers ``call``."""
    return Message("tool", content, tool_call_id=call.id, tool_name=call.name)


def new_call_id() -> str:
    """Return an id for a call of a model that gives none."""
    return f"call_{uuid.uuid4().hex[:16]}"
