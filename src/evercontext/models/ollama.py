"""Stream Ollama by its native API; the compatible one cannot set the context size."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evercontext.domain.lenient_json import arguments_of
from evercontext.domain.message import Message, ToolCall, new_call_id
from evercontext.domain.model import (
    CallDelta,
    Delta,
    Effort,
    EndDelta,
    ModelInfo,
    NoticeDelta,
    Request,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from evercontext.domain.printed_calls import PrintedCalls
from evercontext.errors import ModelProblem, ModelUnknown
from evercontext.models.context_windows import is_small
from evercontext.models.provider_errors import Provider
from evercontext.models.stop_reasons import stop_reason
from evercontext.models.tool_schema import for_model
from evercontext.models.vendor_http import lines_of
from evercontext.process.certificates import certificates

if TYPE_CHECKING:
    import httpx2

ENDPOINT = "http://localhost:11434"
NUM_CTX = 16_384
_PASSES_ANY_ROLE = re.compile(r'\{\{-?\s*\.Role|"tool"')


@dataclass(frozen=True, slots=True)
class Shown:
    """What ``/api/show`` tells of a model."""

    context: int
    tools: bool
    tool_role: bool
    thinks: bool = False
    sees: bool = False


class OllamaModel:
    """One model of an Ollama server. ``describe`` first, to know what it can do."""

    def __init__(
        self,
        model: str,
        *,
        endpoint: str = ENDPOINT,
        num_ctx: int = NUM_CTX,
        timeout: float = 120.0,
        context_window: int | None = None,
    ) -> None:
        """``num_ctx`` caps the context asked for (0: the model's own); memory grows with it."""
        self._model = model
        self._endpoint = address(endpoint)
        self._provider = Provider("ollama", model, address=self._endpoint)
        self._cap = context_window or num_ctx
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._shown: Shown | None = None
        self._info = ModelInfo(f"ollama:{model}", self._cap or NUM_CTX, local=True)

    @property
    def info(self) -> ModelInfo:
        """The window is what is really asked for, once ``describe`` has run."""
        return self._info

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def describe(self) -> Shown:
        """Ask the server what this model can do; raise ModelUnknown if it is not installed."""
        if self._shown is None:
            answer = await self._post("/api/show", {"model": self._model})
            self._shown = shown = _shown(answer)
            size = min(self._cap or shown.context, shown.context)
            self._info = replace(
                self._info,
                window=size,
                native_tools=shown.tools,
                tiny=is_small(size),
                images=shown.sees,
            )
        return self._shown

    async def installed(self) -> list[str]:
        """Return the names of the chat models this server has, newest first."""
        answer = await self._request("GET", "/api/tags", None)
        return [model["name"] for model in answer.get("models", ()) if _chats(model)]

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Stream text as it comes; calls only once the whole answer is there."""
        import httpx2

        shown = await self.describe()
        answer = OllamaAnswer(PrintedCalls(request.tools if shown.tools else ()))
        body = self._body(request, shown)
        try:
            client = await self._connected()
            async with client.stream("POST", "/api/chat", json=body) as response:
                if response.status_code >= 400:
                    raise self._refused(response.status_code, await response.aread())
                async for line in lines_of(response):
                    for delta in answer.take(self._line(line)):
                        yield delta
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            raise self._provider.unavailable("sent something that is not its protocol") from error
        if answer.last is None:
            raise self._provider.unavailable("cut the answer off in the middle")
        for delta in answer.end(self._model, self._info.window):
            yield delta

    def _body(self, request: Request, shown: Shown) -> dict[str, Any]:
        options = {
            "num_ctx": self._info.window,
            "temperature": request.temperature,
            "seed": request.seed,
            "num_predict": request.max_output_tokens,
            "stop": list(request.stop) or None,
        }
        body = {
            "model": self._model,
            "messages": [_message(message) for message in request.messages],
            "stream": True,
            "options": {key: value for key, value in options.items() if value is not None},
            "format": request.response_schema and dict(request.response_schema),
            "tools": [_tool(tool) for tool in request.tools] if shown.tools else None,
            "think": _think(self._model, request.effort) if shown.thinks else None,
        }
        return {key: value for key, value in body.items() if value}

    def _line(self, line: str) -> dict[str, Any]:
        if not line.strip():
            return {}
        try:
            event = json.loads(line)
        except ValueError as error:
            raise self._provider.unavailable("sent something that is not its protocol") from error
        if not isinstance(event, dict):
            raise self._provider.unavailable("sent something that is not its protocol")
        if event.get("error"):
            raise self._provider.refused(500, str(event["error"]))
        return event

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._request("POST", path, body)

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        import httpx2

        try:
            response = await (await self._connected()).request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error
        if response.status_code >= 400:
            raise self._refused(response.status_code, response.content)
        return self._line(response.text)

    def _refused(self, status: int, raw: bytes) -> ModelProblem:
        text = raw.decode("utf-8", "replace")
        arguments, malformed = arguments_of(text)
        reason = text if malformed else str(arguments.get("error", text))
        if status == 404:
            return ModelUnknown(
                f"Ollama has no model {self._model!r}", fix=f"Run: ollama pull {self._model}"
            )
        return self._provider.refused(status, reason)

    def _unreachable(self, error: Exception) -> ModelProblem:
        import httpx2

        if isinstance(error, httpx2.ConnectError):
            return self._provider.unavailable("is not running (`ollama serve` starts it)")
        if isinstance(error, httpx2.TimeoutException):
            return self._provider.unavailable(f"said nothing for {self._timeout:.0f} s")
        return self._provider.unavailable("cut the line")

    async def _connected(self) -> httpx2.AsyncClient:
        trusted = await certificates()
        if self._client is None:
            import httpx2

            waits = httpx2.Timeout(self._timeout, connect=min(5.0, self._timeout))
            self._client = httpx2.AsyncClient(
                base_url=self._endpoint, timeout=waits, verify=trusted
            )
        return self._client


def address(endpoint: str) -> str:
    """Return the endpoint as an URL; ``localhost:11434`` is what people write."""
    bare = endpoint.rstrip("/")
    return bare if "://" in bare else f"http://{bare}"


def _shown(answer: Mapping[str, Any]) -> Shown:
    facts = answer.get("model_info") or {}
    sizes = [value for key, value in facts.items() if key.endswith(".context_length")]
    template = answer.get("template") or ""
    able = answer.get("capabilities")
    # Servers before 0.6.4 do not list capabilities; their templates show them.
    tools = "tools" in able if isinstance(able, list) else ".Tools" in template
    context = int(sizes[0]) if sizes else NUM_CTX
    return Shown(
        context,
        tools,
        tool_role=bool(_PASSES_ANY_ROLE.search(template)),
        thinks=isinstance(able, list) and "thinking" in able,
        sees=isinstance(able, list) and "vision" in able,
    )


def _think(model: str, effort: Effort | None) -> str | bool | None:
    """Return what Ollama takes: a level of gpt-oss alone, of the others only whether."""
    if effort is None:
        return None
    return effort if "gpt-oss" in model else True


def _chats(model: Mapping[str, Any]) -> bool:
    family = (model.get("details") or {}).get("family") or ""
    return "embed" not in model["name"].lower() and "bert" not in family.lower()


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        body["images"] = [image.base64 for image in message.images]
    if message.tool_calls:
        body["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.role == "tool" and message.tool_name:
        body["tool_name"] = message.tool_name
    return body


def _tool(tool: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": for_model(tool.arguments),
        },
    }


@dataclass(slots=True)
class OllamaAnswer:
    """Folds the lines of one answer."""

    printed: PrintedCalls
    calls: list[ToolCall] = field(default_factory=list)
    last: Mapping[str, Any] | None = None

    def take(self, line: Mapping[str, Any]) -> list[Delta]:
        """Take one line; return what can be shown of it."""
        message = line.get("message") or {}
        for call in message.get("tool_calls") or ():
            self.calls.append(_call(call))
        if line.get("done"):
            self.last = line
        thought = message.get("thinking") or ""
        text = self.printed.feed(message.get("content") or "")
        shown: list[Delta] = [ThoughtDelta(thought)] if thought else []
        return [*shown, TextDelta(text)] if text else shown

    def end(self, model: str, window: int) -> list[Delta]:
        """Return the calls, native or printed, and the end."""
        last = self.last or {}
        text, printed = self.printed.finish()
        calls = self.calls or list(printed)
        usage = Usage(last.get("prompt_eval_count") or 0, last.get("eval_count") or 0)
        deltas: list[Delta] = [TextDelta(text)] if text else []
        deltas += [CallDelta(call) for call in calls]
        if usage.input_tokens >= window - 1:
            deltas.append(NoticeDelta(_overfull(window)))
        stop = stop_reason(last.get("done_reason"))
        if calls and stop == "end":
            stop = "tool_calls"
        return [*deltas, EndDelta(stop, usage, last.get("model") or model)]


def _overfull(window: int) -> str:
    return f"The prompt filled all {window} tokens and may have been cut. Raise EC_OLLAMA_NUM_CTX"


def _call(call: Mapping[str, Any]) -> ToolCall:
    about = call.get("function") or {}
    arguments = about.get("arguments") or {}
    call_id = call.get("id") or new_call_id()
    name = str(about.get("name") or "")
    if isinstance(arguments, str):
        return ToolCall(call_id, name, *arguments_of(arguments))
    return ToolCall(call_id, name, arguments)
