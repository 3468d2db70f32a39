"""OpenAI and every server that speaks its Chat Completions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    ToolSpec,
    Usage,
)
from evercontext.errors import ModelProblem
from evercontext.models.json_reply import new_call_id
from evercontext.models.lenient_json import arguments_of
from evercontext.models.printed_calls import PrintedCalls
from evercontext.models.provider_errors import Provider
from evercontext.models.windows import window
from evercontext.models.wire_names import WireNames

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ADDRESS = "https://api.openai.com/v1"
_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}
_OPTIONAL = ("temperature", "seed", "stop", "response_format", "stream_options")


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
        # Local servers take any key, and the SDK insists on one.
        self._key = api_key or "none"
        self._timeout = timeout
        self._client: AsyncOpenAI | None = None
        self._refused: set[str] = set()
        size = window(model, context_window)
        self._info = ModelInfo(f"openai:{model}", size, native_tools=native_tools)

    @property
    def info(self) -> ModelInfo:
        """What is known of the model by its name."""
        return self._info

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Stream text as it comes; calls only once the whole answer is there."""
        import httpx2
        import openai

        tools = request.tools if self._info.native_tools else ()
        names = WireNames(tools)
        body = self._body(request, tools, names)
        answer = _Answer(PrintedCalls(() if self._own else tools))
        try:
            async with await self._open(body) as chunks:
                async for chunk in chunks:
                    for delta in answer.take(chunk):
                        yield delta
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise self._problem(error) from error
        if answer.finish is None:
            raise self._provider.unavailable("cut the answer off in the middle")
        for delta in answer.end(names, self._model):
            yield delta

    async def _open(self, body: dict[str, Any]) -> Any:
        """Start the stream; leave out, once and for all, an option that this model refuses."""
        import openai

        while True:
            kept = {key: value for key, value in body.items() if key not in self._refused}
            try:
                return await self._connected().chat.completions.create(**kept, stream=True)
            except openai.BadRequestError as error:
                refused = _refused_option(error, kept)
                if refused is None:
                    raise
                self._refused.add(refused)

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            import openai

            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._provider.address,
                max_retries=0,
                timeout=httpx2.Timeout(self._timeout, connect=min(10.0, self._timeout)),
            )
        return self._client

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
            "stop": list(request.stop) or None,
            "response_format": schema and _response_format(schema),
        }
        return {key: value for key, value in body.items() if value is not None}

    def _problem(self, error: Exception) -> ModelProblem:
        import httpx2
        import openai

        if isinstance(error, openai.APIStatusError):
            kind, headers = error.code or error.type or "", error.response.headers
            return self._provider.refused(
                error.status_code, error.message, kind=kind, headers=headers
            )
        if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
            return self._provider.unavailable(f"said nothing for {self._timeout:.0f} s")
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
            return self._provider.unavailable(f"cannot be reached: {_cause(error)}")
        if isinstance(error, openai.APIError):
            return self._provider.refused(0, error.message, kind=error.code or "")
        return self._provider.unavailable("sent something that is not its protocol")


@dataclass(slots=True)
class _Part:
    """A call while its fragments come in."""

    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Answer:
    """Folds the chunks of one answer."""

    def __init__(self, printed: PrintedCalls) -> None:
        self._printed = printed
        self._parts: list[_Part] = []
        self._open: dict[int, _Part] = {}
        self._usage = Usage()
        self._model: str | None = None
        self.finish: str | None = None

    def take(self, chunk: Any) -> list[Delta]:
        """Take one chunk; return what can be shown of it."""
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        deltas: list[Delta] = []
        for choice in (chunk.choices or ())[:1]:
            self.finish = choice.finish_reason or self.finish
            if choice.delta is not None:
                deltas += self._shown(choice.delta)
                for fragment in choice.delta.tool_calls or ():
                    self._fragment(fragment)
        return deltas

    def _shown(self, delta: Any) -> list[Delta]:
        # Neither name is OpenAI's own: DeepSeek and vLLM write the first, OpenRouter the second.
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        text = self._printed.feed((delta.content or "") + (delta.refusal or ""))
        shown: list[Delta] = [ThoughtDelta(thought)] if isinstance(thought, str) else []
        return [*shown, TextDelta(text)] if text else shown

    def _fragment(self, fragment: Any) -> None:
        part = self._open.get(fragment.index or 0)
        # Some servers give every parallel call the index 0; the id tells them apart.
        if part is None or (fragment.id and fragment.id != part.id):
            part = _Part(fragment.id or new_call_id())
            self._open[fragment.index or 0] = part
            self._parts.append(part)
        if fragment.function is not None:
            part.name = part.name or fragment.function.name or ""
            part.arguments.append(fragment.function.arguments or "")

    def end(self, names: WireNames, model: str) -> list[Delta]:
        """Return the whole calls and the end."""
        text, printed = self._printed.finish()
        calls = [_call(part, names) for part in self._parts] or list(printed)
        deltas: list[Delta] = [TextDelta(text)] if text else []
        deltas += [CallDelta(call) for call in calls]
        stop = _STOPS.get(self.finish or "", "end")
        if calls and stop == "end":
            stop = "tool_calls"
        return [*deltas, EndDelta(stop, self._usage, self._model or model)]


def _call(part: _Part, names: WireNames) -> ToolCall:
    arguments, malformed = arguments_of("".join(part.arguments))
    return ToolCall(part.id, names.back(part.name), arguments, malformed)


def _usage(found: Any) -> Usage:
    details = getattr(found, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    return Usage(found.prompt_tokens or 0, found.completion_tokens or 0, cached)


def _message(message: Message, names: WireNames) -> dict[str, Any]:
    if message.role == "tool":
        return {
            "role": "tool",
            "content": message.content,
            "tool_call_id": message.tool_call_id or "",
        }
    told: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        told["content"] = message.content or None
        told["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": names.there(call.name), "arguments": _written(call)},
            }
            for call in message.tool_calls
        ]
    return told


def _written(call: ToolCall) -> str:
    # Malformed arguments are not repeated: several servers parse history and fail on it.
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def _tool(tool: ToolSpec, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": names.there(tool.name),
            "description": tool.description,
            "parameters": dict(tool.arguments),
        },
    }


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}


def _refused_option(error: Any, sent: Mapping[str, Any]) -> str | None:
    """Return the optional parameter that a 400 is about, if it is about one."""
    named = error.param or ""
    for option in _OPTIONAL:
        if option in sent and (named.split(".")[0] == option or f"'{option}'" in error.message):
            return option
    return None


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(str(cause).split())[:200] or type(cause).__name__
