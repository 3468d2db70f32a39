"""Stream Claude through the Messages API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from evercontext.domain.lenient_json import arguments_of
from evercontext.domain.message import Image, Message, ToolCall
from evercontext.domain.model import (
    CallDelta,
    Delta,
    EndDelta,
    ModelInfo,
    Request,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from evercontext.models.context_windows import window
from evercontext.models.provider_errors import Provider
from evercontext.models.stop_reasons import stop_reason
from evercontext.models.tool_names import WireNames
from evercontext.models.tool_schema import for_model
from evercontext.models.vendor_http import Refusal, VendorHttp, vendor_headers
from evercontext.settings import process_environment

ADDRESS = "https://api.anthropic.com"
VERSION = "2026-10-21"
MAX_OUTPUT = 16_000
"""The API insists on a limit; this one fits every current model and most files."""
PATH = "/v1/messages"
_NO_EFFORT = re.compile(r"thinking|output_config|effort")
_CACHE = {"cache_control": {"type": "ephemeral"}}
Block = dict[str, Any]


class AnthropicModel:
    """One Claude model."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 120.0,
        context_window: int | None = None,
    ) -> None:
        self._model = model
        address = base_url or ADDRESS
        self._provider = Provider("anthropic", model, "ANTHROPIC_API_KEY", address)
        if not api_key and base_url in (None, ADDRESS):
            raise self._provider.no_key()
        self._http = VendorHttp(self._provider, headers_for(api_key or "none"), timeout)
        self._takes_temperature = True
        self._takes_effort = True
        self._info = ModelInfo(f"anthropic:{model}", window(model, context_window), images=True)

    @property
    def info(self) -> ModelInfo:
        """What is known of the model by its name."""
        return self._info

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Stream text and thinking as they come; calls only once the whole answer is there."""
        names = WireNames(request.tools)
        answer = AnthropicAnswer(self._model)
        try:
            async with self._open(request, names) as events:
                async for event in events:
                    for delta in answer.take(event):
                        yield delta
        except Refusal as refusal:
            raise await self._http.explained(refusal) from refusal
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._provider.unavailable("sent something that is not its protocol") from error
        if not answer.complete:
            raise self._provider.unavailable("cut the answer off in the middle")
        for delta in answer.end(names):
            yield delta

    @asynccontextmanager
    async def _open(
        self, request: Request, names: WireNames
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        body = {**_body(self._model, request, names), "stream": True}
        async with AsyncExitStack() as stack:
            if request.effort and self._takes_effort:
                thinking = {
                    "thinking": {"type": "adaptive"},
                    "output_config": {"effort": request.effort},
                }
                try:
                    events = await stack.enter_async_context(
                        self._http.events(PATH, body | thinking)
                    )
                except Refusal as refusal:
                    # Models before adaptive thinking answer without it.
                    if refusal.status != 400 or not _NO_EFFORT.search(refusal.message):
                        raise
                    self._takes_effort = False
                else:
                    yield events
                    return
            if request.temperature is not None and self._takes_temperature:
                warm = {**body, "temperature": request.temperature}
                try:
                    events = await stack.enter_async_context(self._http.events(PATH, warm))
                except Refusal as refusal:
                    # Current models refuse every sampling option; older ones want it.
                    if refusal.status != 400 or "temperature" not in refusal.message:
                        raise
                    self._takes_temperature = False
                else:
                    yield events
                    return
            yield await stack.enter_async_context(self._http.events(PATH, body))


def headers_for(key: str) -> dict[str, str]:
    """Return the headers that every request carries."""
    own = {"Authorization": f"Bearer {key}", "anthropic-version": VERSION}
    return own | vendor_headers("ANTHROPIC", process_environment())


def _body(model: str, request: Request, names: WireNames) -> dict[str, Any]:
    system = [message.content for message in request.messages if message.role == "system"]
    tools: list[Block] = [
        {
            "name": names.there(tool.name),
            "description": tool.description,
            "input_schema": for_model(tool.arguments),
        }
        for tool in request.tools
    ]
    # The marks lie where requests of one conversation stay the same: tools, system, history.
    if tools:
        tools[-1] |= _CACHE
    messages = turns([m for m in request.messages if m.role != "system"], names, model)
    if messages:
        messages[-1]["content"][-1] |= _CACHE
    body = {
        "model": model,
        "max_tokens": request.max_output_tokens or MAX_OUTPUT,
        "messages": messages,
        "system": [{"type": "text", "text": "\n\n".join(system), **_CACHE}] if system else None,
        "tools": tools,
        "stop_sequences": list(request.stop),
    }
    return {key: value for key, value in body.items() if value or key == "messages"}


def turns(messages: Sequence[Message], names: WireNames, model: str) -> list[Block]:
    """Return alternating turns that start with the user, same-role neighbours merged."""
    conversation: list[Block] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, names, model)
        if not blocks:
            continue
        if not conversation and role == "assistant":
            conversation.append({"role": "user", "content": [_text("(The conversation goes on.)")]})
        if conversation and conversation[-1]["role"] == role:
            conversation[-1]["content"] += blocks
        else:
            conversation.append({"role": role, "content": blocks})
    for turn in conversation:
        # Results must come before any other words of the same turn.
        turn["content"].sort(key=lambda block: turn["role"] == "user" and not _is_result(block))
    return conversation


def _is_result(block: Block) -> bool:
    return bool(block["type"] == "tool_result")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _blocks(message: Message, names: WireNames, model: str) -> list[Block]:
    if message.role == "tool":
        content = {"content": message.content} if message.content else {}
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id or "", **content}]
    # The API refuses blank text.
    words = [_text(message.content)] if message.content.strip() else []
    if message.role != "assistant":
        return [*map(_image, message.images), *words]
    stored = message.extras.get("anthropic", {})
    if stored.get("model") == model and _calls_in(stored["content"]) == [
        call.id for call in message.tool_calls
    ]:
        return [dict(block) for block in stored["content"]]
    return [*words, *(_tool_use(call, names) for call in message.tool_calls)]


def _image(image: Image) -> Block:
    source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
    return {"type": "image", "source": source}


def _calls_in(content: Sequence[Block]) -> list[str]:
    return [block["id"] for block in content if block["type"] == "tool_use"]


def _tool_use(call: ToolCall, names: WireNames) -> Block:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": names.there(call.name),
        "input": dict(call.arguments),
    }


class AnthropicAnswer:
    """Folds the events of one answer."""

    def __init__(self, model: str) -> None:
        self._requested = model
        self._model: str | None = None
        self._blocks: dict[int, Block] = {}
        self._json: dict[int, list[str]] = {}
        self._counted: Mapping[str, Any] = {}
        self._stop: str | None = None
        self.complete = False

    def take(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take one event; return what can be shown of it."""
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model")
                self._counted = event["message"].get("usage") or {}
            case "content_block_start":
                block = event["content_block"]
                self._blocks[event["index"]] = {k: v for k, v in block.items() if v is not None}
            case "content_block_delta":
                return self._grow(event["index"], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                # Some servers count the input only here; what is told later counts.
                later = {name: count for name, count in (event.get("usage") or {}).items() if count}
                self._counted = {**self._counted, **later}
            case "message_stop":
                self.complete = True
        return []

    def _grow(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks[index]
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
                return [TextDelta(delta["text"])]
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
                return [ThoughtDelta(delta["thinking"])]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "input_json_delta":
                self._json.setdefault(index, []).append(delta["partial_json"])
        return []

    def end(self, names: WireNames) -> list[Delta]:
        """Return the whole calls and the end."""
        calls = [
            self._call(index, block, names)
            for index, block in sorted(self._blocks.items())
            if block["type"] == "tool_use"
        ]
        stop = stop_reason(self._stop)
        end = EndDelta(stop, self._usage(), self._model or self._requested, self._extras())
        return [*(CallDelta(call) for call in calls), end]

    def _call(self, index: int, block: Block, names: WireNames) -> ToolCall:
        arguments, malformed = arguments_of("".join(self._json.get(index, ())))
        block["input"] = arguments or block.get("input") or {}
        return ToolCall(block["id"], names.back(block["name"]), block["input"], malformed)

    def _usage(self) -> Usage:
        def count(name: str) -> int:
            return self._counted.get(name) or 0

        cached = count("cache_read_input_tokens")
        read = count("input_tokens") + cached + count("cache_creation_input_tokens")
        return Usage(read, count("output_tokens"), cached)

    def _extras(self) -> dict[str, Any]:
        """Thinking must go back verbatim, in its place among the other blocks."""
        content = [block for _, block in sorted(self._blocks.items())]
        if not any("thinking" in block["type"] for block in content):
            return {}
        returned = [block for block in content if block["type"] != "text" or block["text"].strip()]
        return {"anthropic": {"model": self._requested, "content": returned}}
