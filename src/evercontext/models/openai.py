"""Stream OpenAI and every server with its Chat Completions API."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evercontext.domain.lenient_json import arguments_of
from evercontext.domain.message import Message, ToolCall, new_call_id
from evercontext.domain.model import (
    CallDelta,
    Delta,
    EndDelta,
    ModelInfo,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
)
from evercontext.domain.printed_calls import PrintedCalls
from evercontext.models.context_windows import is_small, window
from evercontext.models.provider_errors import Provider
from evercontext.models.stop_reasons import broke_off, stop_reason
from evercontext.models.tool_fallback import ToolsRefused, refuses_tools, were_dropped
from evercontext.models.tool_names import WireNames
from evercontext.models.tool_schema import for_model
from evercontext.models.vendor_http import Refusal, VendorHttp, vendor_headers
from evercontext.settings import process_environment

_SEES = re.compile(
    r"gpt-(?:4o|4\.1|4-turbo|[5-9])|chatgpt-|\bo[134](?!-mini\b)|o4-mini|claude|gemini|llava|pixtral"
    r"|-vl\b|vision|gemma-?3|llama-?4",
    re.IGNORECASE,
)
"""Names of models that take pictures, also behind gateways that speak the same protocol."""
ADDRESS = "https://api.openai.com/v1"
_FORMAT = re.compile(r"response_format|json_schema|grammar|structured output", re.IGNORECASE)
_OPTIONAL = (
    "temperature",
    "seed",
    "stop",
    "response_format",
    "stream_options",
    "reasoning_effort",
)


class OpenAIModel:
    """One model behind a Chat Completions endpoint."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 120.0,
        context_window: int | None = None,
        native_tools: bool = True,
    ) -> None:
        """``native_tools=False`` is for servers that know no tools: wrap it in JsonProtocol."""
        self._model = model
        self._own = base_url is None or base_url.rstrip("/") == ADDRESS
        address = base_url or ADDRESS
        self._provider = Provider("openai", model, "OPENAI_API_KEY", address)
        if not api_key and self._own:
            raise self._provider.no_key()
        # Local servers take any key, and some insist on one.
        self._http = VendorHttp(self._provider, headers_for(api_key or "none"), timeout)
        self._refused: set[str] = set()
        size = window(model, context_window)
        self._calls_tools = False
        self._info = ModelInfo(
            f"openai:{model}",
            size,
            native_tools=native_tools,
            tiny=is_small(size),
            images=bool(_SEES.search(model)),
        )

    @property
    def info(self) -> ModelInfo:
        """What is known of the model by its name."""
        return self._info

    def drop_tools(self) -> None:
        """Send no tools from now on."""
        self._info = replace(self._info, native_tools=False)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Stream text as it comes; calls only once the whole answer is there."""
        tools = request.tools if self._info.native_tools else ()
        names = WireNames(tools)
        body = self._body(request, tools, names)
        answer = OpenAIAnswer(PrintedCalls(() if self._own else tools))
        try:
            async with self._open(body) as chunks:
                async for chunk in chunks:
                    for delta in answer.take(chunk):
                        yield delta
        except Refusal as refusal:
            if tools and refuses_tools(refusal.status, refusal.message):
                raise ToolsRefused(f"{self._info.name} takes no tools") from refusal
            raise await self._http.explained(refusal) from refusal
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._provider.unavailable("sent something that is not its protocol") from error
        if answer.finish is None or broke_off(answer.finish):
            raise self._provider.unavailable("cut the answer off in the middle")
        end = answer.end(names, self._model)
        self._check_tools(tools, end)
        for delta in end:
            yield delta

    def _check_tools(self, tools: Sequence[ToolSpec], end: Sequence[Delta]) -> None:
        """Raise if the server never let the model see the tools."""
        self._calls_tools |= any(isinstance(delta, CallDelta) for delta in end)
        counted = next((delta.usage for delta in end if isinstance(delta, EndDelta)), Usage())
        if not self._own and not self._calls_tools and were_dropped(tools, counted.input_tokens):
            raise ToolsRefused(f"{self._info.name} was not shown the tools by its server")

    @asynccontextmanager
    async def _open(self, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Start the stream; leave out, once and for all, an option that this model refuses."""
        while True:
            sent = {key: value for key, value in body.items() if key not in self._refused}
            async with AsyncExitStack() as stack:
                stream = self._http.events("/chat/completions", {**sent, "stream": True})
                try:
                    chunks = await stack.enter_async_context(stream)
                except Refusal as refusal:
                    option = _refused_option(refusal, sent)
                    if option is None:
                        raise
                    self._refused.add(option)
                    continue
                yield chunks
                return

    def _body(
        self, request: Request, tools: Sequence[ToolSpec], names: WireNames
    ) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._own else "max_tokens"
        schema = request.response_schema
        body = {
            "model": self._model,
            "messages": [_message(message, names) for message in request.messages],
            "stream_options": {"include_usage": True},
            "tools": [_tool(tool, names) for tool in tools] or None,
            limit: request.max_output_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "reasoning_effort": request.effort,
            "stop": list(request.stop) or None,
            "response_format": schema and _response_format(schema),
        }
        return {key: value for key, value in body.items() if value is not None}


def headers_for(key: str) -> dict[str, str]:
    """Return the headers that every request carries."""
    own = {"Authorization": f"Bearer {key}"}
    return own | vendor_headers("OPENAI", process_environment())


@dataclass(slots=True)
class _Part:
    """A call while its fragments come in."""

    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class OpenAIAnswer:
    """Folds the chunks of one answer."""

    def __init__(self, printed: PrintedCalls) -> None:
        self._printed = printed
        self._parts: list[_Part] = []
        self._open: dict[int, _Part] = {}
        self._usage = Usage()
        self._model: str | None = None
        self.finish: str | None = None

    def take(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Take one chunk; return what can be shown of it."""
        self._model = chunk.get("model") or self._model
        if chunk.get("usage"):
            self._usage = _usage(chunk["usage"])
        deltas: list[Delta] = []
        for choice in (chunk.get("choices") or ())[:1]:
            self.finish = choice.get("finish_reason") or self.finish
            if delta := choice.get("delta"):
                deltas += self._shown(delta)
                for fragment in delta.get("tool_calls") or ():
                    self._fragment(fragment)
        return deltas

    def _shown(self, delta: Mapping[str, Any]) -> list[Delta]:
        # Neither name is OpenAI's own: DeepSeek and vLLM write the first, OpenRouter the second.
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        text = self._printed.feed((delta.get("content") or "") + (delta.get("refusal") or ""))
        shown: list[Delta] = [ThoughtDelta(thought)] if isinstance(thought, str) else []
        return [*shown, TextDelta(text)] if text else shown

    def _fragment(self, fragment: Mapping[str, Any]) -> None:
        index, call_id = fragment.get("index") or 0, fragment.get("id")
        part = self._open.get(index)
        # Some servers give every parallel call the index 0; the id tells them apart.
        if part is None or (call_id and call_id != part.id):
            part = _Part(call_id or new_call_id())
            self._open[index] = part
            self._parts.append(part)
        if function := fragment.get("function"):
            part.name = part.name or function.get("name") or ""
            part.arguments.append(function.get("arguments") or "")

    def end(self, names: WireNames, model: str) -> list[Delta]:
        """Return the whole calls and the end."""
        text, printed = self._printed.finish()
        calls = [_call(part, names) for part in self._parts] or list(printed)
        deltas: list[Delta] = [TextDelta(text)] if text else []
        deltas += [CallDelta(call) for call in calls]
        stop = stop_reason(self.finish)
        if calls and stop == "end":
            stop = "tool_calls"
        return [*deltas, EndDelta(stop, self._usage, self._model or model)]


def _call(part: _Part, names: WireNames) -> ToolCall:
    arguments, malformed = arguments_of("".join(part.arguments))
    return ToolCall(part.id, names.back(part.name), arguments, malformed)


def _usage(counted: Mapping[str, Any]) -> Usage:
    details = counted.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    return Usage(counted.get("prompt_tokens") or 0, counted.get("completion_tokens") or 0, cached)


def _message(message: Message, names: WireNames) -> dict[str, Any]:
    if message.role == "tool":
        return {
            "role": "tool",
            "content": message.content,
            "tool_call_id": message.tool_call_id or "",
        }
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        body["content"] = [
            {"type": "text", "text": message.content},
            *(
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:{image.media_type};base64,{image.base64}"},
                }
                for image in message.images
            ),
        ]
    if message.tool_calls:
        body["content"] = message.content or None
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": names.there(call.name), "arguments": _written(call)},
            }
            for call in message.tool_calls
        ]
    return body


def _written(call: ToolCall) -> str:
    # Malformed arguments are not repeated: several servers parse history and fail on it.
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def _tool(tool: ToolSpec, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": names.there(tool.name),
            "description": tool.description,
            "parameters": for_model(tool.arguments),
        },
    }


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}


def _refused_option(refusal: Refusal, sent: Mapping[str, Any]) -> str | None:
    """Return the optional parameter that a 400 is about, if it is about one."""
    if refusal.status != 400:
        return None
    for option in _OPTIONAL:
        is_meant = refusal.param.split(".")[0] == option or f"'{option}'" in refusal.message
        is_meant |= option == "response_format" and bool(_FORMAT.search(refusal.message))
        if option in sent and is_meant:
            return option
    return None
