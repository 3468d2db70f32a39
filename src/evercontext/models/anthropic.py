"""Claude, through the Messages API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from evercontext.domain.message import Message, ToolCall
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
from evercontext.errors import ModelProblem
from evercontext.models.lenient_json import arguments_of
from evercontext.models.provider_errors import Provider
from evercontext.models.windows import window
from evercontext.models.wire_names import WireNames

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

ADDRESS = "https://api.anthropic.com"
MAX_OUTPUT = 16_000
"""The API insists on a limit; this one fits every current model and most files."""
_CACHE = {"cache_control": {"type": "ephemeral"}}
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
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
        self._key = api_key or "none"
        self._timeout = timeout
        self._client: AsyncAnthropic | None = None
        self._takes_temperature = True
        self._info = ModelInfo(f"anthropic:{model}", window(model, context_window))

    @property
    def info(self) -> ModelInfo:
        """What is known of the model by its name."""
        return self._info

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Stream text and thinking as they come; calls only once the whole answer is there."""
        import anthropic
        import httpx2

        names = WireNames(request.tools)
        answer = _Answer(self._model)
        try:
            async with await self._open(request, names) as events:
                async for event in events:
                    for delta in answer.take(event):
                        yield delta
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise self._problem(error) from error
        if not answer.whole:
            raise self._provider.unavailable("cut the answer off in the middle")
        for delta in answer.end(names):
            yield delta

    async def _open(self, request: Request, names: WireNames) -> Any:
        import anthropic

        body = _body(self._model, request, names)
        try:
            return await self._create(body, request.temperature)
        except anthropic.BadRequestError as error:
            # Current models refuse every sampling option; older ones want it.
            if not self._takes_temperature or "temperature" not in error.message:
                raise
            self._takes_temperature = False
            return await self._create(body, None)

    async def _create(self, body: dict[str, Any], temperature: float | None) -> Any:
        sampling = temperature is not None and self._takes_temperature
        extra = {"temperature": temperature} if sampling else None
        return await self._connected().messages.create(**body, stream=True, extra_body=extra)

    def _connected(self) -> AsyncAnthropic:
        if self._client is None:
            import anthropic
            import httpx2

            self._client = anthropic.AsyncAnthropic(
                api_key=self._key,
                base_url=self._provider.address,
                max_retries=0,
                timeout=httpx2.Timeout(self._timeout, connect=min(10.0, self._timeout)),
            )
        return self._client

    def _problem(self, error: Exception) -> ModelProblem:
        import anthropic
        import httpx2

        if isinstance(error, anthropic.APIStatusError):
            message = error.api_message or error.message
            kind, headers = error.type or "", error.response.headers
            return self._provider.refused(error.status_code, message, kind=kind, headers=headers)
        if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException):
            return self._provider.unavailable(f"said nothing for {self._timeout:.0f} s")
        if isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError):
            return self._provider.unavailable("cannot be reached, or cut the line")
        return self._provider.unavailable("sent something that is not its protocol")


def _body(model: str, request: Request, names: WireNames) -> dict[str, Any]:
    system = [message.content for message in request.messages if message.role == "system"]
    tools: list[Block] = [
        {
            "name": names.there(tool.name),
            "description": tool.description,
            "input_schema": dict(tool.arguments),
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
    found: list[Block] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, names, model)
        if not blocks:
            continue
        if not found and role == "assistant":
            found.append({"role": "user", "content": [_text("(The conversation goes on.)")]})
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        else:
            found.append({"role": role, "content": blocks})
    for turn in found:
        # Results must come before any other words of the same turn.
        turn["content"].sort(key=lambda block: turn["role"] == "user" and not _is_result(block))
    return found


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
        return words
    kept = message.extras.get("anthropic", {})
    if kept.get("model") == model and _calls_in(kept["content"]) == [
        call.id for call in message.tool_calls
    ]:
        return [dict(block) for block in kept["content"]]
    return [*words, *(_tool_use(call, names) for call in message.tool_calls)]


def _calls_in(content: Sequence[Block]) -> list[str]:
    return [block["id"] for block in content if block["type"] == "tool_use"]


def _tool_use(call: ToolCall, names: WireNames) -> Block:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": names.there(call.name),
        "input": dict(call.arguments),
    }


class _Answer:
    """Folds the events of one answer."""

    def __init__(self, model: str) -> None:
        self._asked = model
        self._model: str | None = None
        self._blocks: dict[int, Block] = {}
        self._json: dict[int, list[str]] = {}
        self._start: Any = None
        self._output = 0
        self._stop: str | None = None
        self.whole = False

    def take(self, event: Any) -> list[Delta]:
        """Take one event; return what can be shown of it."""
        match event.type:
            case "message_start":
                self._model = event.message.model
                self._start = event.message.usage
            case "content_block_start":
                self._blocks[event.index] = event.content_block.model_dump(exclude_none=True)
            case "content_block_delta":
                return self._grow(event.index, event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                self._output = getattr(event.usage, "output_tokens", None) or self._output
            case "message_stop":
                self.whole = True
        return []

    def _grow(self, index: int, delta: Any) -> list[Delta]:
        block = self._blocks[index]
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + delta.text
                return [TextDelta(delta.text)]
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.thinking
                return [ThoughtDelta(delta.thinking)]
            case "signature_delta":
                block["signature"] = delta.signature
            case "input_json_delta":
                self._json.setdefault(index, []).append(delta.partial_json)
        return []

    def end(self, names: WireNames) -> list[Delta]:
        """Return the whole calls and the end."""
        calls = [
            self._call(index, block, names)
            for index, block in sorted(self._blocks.items())
            if block["type"] == "tool_use"
        ]
        stop = _STOPS.get(self._stop or "", "end")
        end = EndDelta(stop, self._usage(), self._model or self._asked, self._extras())
        return [*(CallDelta(call) for call in calls), end]

    def _call(self, index: int, block: Block, names: WireNames) -> ToolCall:
        arguments, malformed = arguments_of("".join(self._json.get(index, ())))
        block["input"] = arguments or block.get("input") or {}
        return ToolCall(block["id"], names.back(block["name"]), block["input"], malformed)

    def _usage(self) -> Usage:
        def count(name: str) -> int:
            return getattr(self._start, name, None) or 0

        cached = count("cache_read_input_tokens")
        read = count("input_tokens") + cached + count("cache_creation_input_tokens")
        return Usage(read, self._output or count("output_tokens"), cached)

    def _extras(self) -> dict[str, Any]:
        """Thinking must go back verbatim, in its place among the other blocks."""
        content = [block for _, block in sorted(self._blocks.items())]
        if not any("thinking" in block["type"] for block in content):
            return {}
        kept = [block for block in content if block["type"] != "text" or block["text"].strip()]
        return {"anthropic": {"model": self._asked, "content": kept}}
