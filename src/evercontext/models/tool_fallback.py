"""Call tools by the JSON protocol where a server turns out not to take them (P7)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from evercontext.domain.model import Delta, Model, ModelInfo, NoticeDelta, Request, ToolSpec
from evercontext.errors import ModelRefused
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.model_stream import open_stream

_STATUSES = (400, 404, 405, 422, 500, 501)
"""vLLM, Ollama and litellm answer 400, OpenRouter 404, older llama.cpp 500."""
_TOOLS = re.compile(r"\btools?\b|\btool[_ -](?:choice|use|call)|function[_ -]?call", re.IGNORECASE)
_NONE = re.compile(
    r"not (?:\w+ )?(?:support|enabled|available|permitted|allowed|implemented)|n't support"
    r"|unsupported|unrecognized|unknown|unexpected|requires?\b|no endpoints",
    re.IGNORECASE,
)
_MOST_PER_TOKEN = 10
"""Characters: no tokenizer puts more of a tool's schema into one token."""


class ToolsRefused(ModelRefused):
    """The server does not take tools, or left them out of the prompt."""


def refuses_tools(status: int, message: str) -> bool:
    """Tell whether a server's refusal says that it, or its model, knows no tools."""
    return status in _STATUSES and bool(_TOOLS.search(message) and _NONE.search(message))


def were_dropped(tools: Sequence[ToolSpec], input_tokens: int) -> bool:
    """Tell whether a prompt was too small to hold the tools that were sent with it.

    llama.cpp and others leave them out, without a word, where the chat template has no place
    for them. A server that counts nothing is believed.
    """
    size = sum(len(tool.name) + len(tool.description) for tool in tools)
    size += sum(len(json.dumps(dict(tool.arguments), default=str)) for tool in tools)
    return 0 < input_tokens < size // _MOST_PER_TOKEN


class ToolModel(Model, Protocol):
    """A model that can be asked without tools."""

    def drop_tools(self) -> None:
        """Send no tools from now on."""


class ToolFallback:
    """A model with tools of its own, until its server refuses them once."""

    def __init__(self, native: ToolModel) -> None:
        self._native = native
        self._json: JsonProtocol | None = None

    @property
    def info(self) -> ModelInfo:
        """What is known of the model; without native tools once they were refused."""
        return self._json.info if self._json else self._native.info

    async def aclose(self) -> None:
        """Close the model."""
        await self._native.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield the answer; a request whose tools are refused is made again without them."""
        if self._json is None:
            streamed = False
            try:
                async with open_stream(self._native, request) as deltas:
                    async for delta in deltas:
                        streamed = streamed or not isinstance(delta, NoticeDelta)
                        yield delta
                return
            except ToolsRefused:
                self._native.drop_tools()
                self._json = JsonProtocol(self._native, tool_role=False)
            words = f"{self.info.name} takes no tools; it is asked for JSON instead"
            yield NoticeDelta(words, restart=streamed, retry=True)
        async with open_stream(self._json, request) as deltas:
            async for delta in deltas:
                yield delta
