"""The embedded model behind the same interface as every other one.

It has one purpose: the first try of a newcomer without a key, which ends in one small new file.
With tools in the request it answers in Hermes JSON, which ``JsonProtocol`` reads: the content is
generated in the fenced form that small models were trained on, checked, and put into that JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.domain.lenient_json import NotJson
from evercontext.domain.message import Message, ToolCall
from evercontext.domain.model import (
    Delta,
    EndDelta,
    ModelInfo,
    NoticeDelta,
    Request,
    TextDelta,
    ToolSpec,
    Usage,
)
from evercontext.errors import BadReply, ModelRefused
from evercontext.models import json_reply
from evercontext.models.embedded import file_forms, weights
from evercontext.models.embedded.file_forms import FileForm
from evercontext.models.embedded.runtime import Runtime
from evercontext.models.embedded.task_parser import FileTask, read_task
from evercontext.models.embedded.written_files import WrittenFiles

WINDOW = 4096
NOTICE = (
    "SmolLM2 is a 135M model inside EverContext: good for hello-world tasks, not for programming. "
    "It writes small new files and answers nothing about a project. "
    "For real work run: evercontext setup (a key of OpenAI or Anthropic, or Ollama)"
)
STRONGER = "Set up a stronger model: evercontext setup"
_MOST_CONTENT = 200
_MOST_ANSWER = 300
_SEED = 7
_WRITERS = frozenset({"write_file", "writeFile"})
_READERS = frozenset({"read_file", "readFile"})
_RESULT = "Result of "
"""How the protocol labels a result that comes back in the user's role."""


@dataclass(slots=True)
class _Spent:
    """Tokens of all the generations behind one reply."""

    usage: Usage = field(default_factory=Usage)
    cut: bool = False


class EmbeddedModel:
    """SmolLM2 through llama.cpp. Wrap it in ``JsonProtocol`` to let it call tools."""

    def __init__(self, home: Path, name: str = weights.SMOLLM2.name) -> None:
        """Nothing is loaded before the first question."""
        known = weights.find(name)
        self._info = ModelInfo(
            f"embedded:{known.name}",
            WINDOW,
            native_tools=False,
            local=True,
            tiny=True,
            notice=NOTICE,
        )
        self._written = WrittenFiles(home)
        self._runtime = Runtime(weights.stored_at(home, known), window=WINDOW, verify=known.verify)

    @property
    def info(self) -> ModelInfo:
        """What is known of this model."""
        return self._info

    async def aclose(self) -> None:
        """Give the model's memory back."""
        await self._runtime.close()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield Hermes JSON if there are tools, else plain text."""
        spent = _Spent()
        answer = self._act(request, spent) if request.tools else self._talk(request, spent)
        async with aclosing(answer) as deltas:
            async for delta in deltas:
                yield delta
        yield EndDelta("length" if spent.cut else "end", spent.usage, self.info.bare_name)

    async def _talk(self, request: Request, spent: _Spent) -> AsyncGenerator[Delta, None]:
        body: dict[str, Any] = {
            "messages": [_spoken(message) for message in request.messages],
            "max_tokens": request.max_output_tokens or _MOST_ANSWER,
            "temperature": request.temperature or 0.0,
            "seed": _SEED if request.seed is None else request.seed,
            "stop": list(request.stop),
            "repeat_penalty": 1.1,
        }
        if request.response_schema is not None:
            schema = {"schema": dict(request.response_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        async for text in self._generate(body, spent):
            yield TextDelta(text)

    async def _act(self, request: Request, spent: _Spent) -> AsyncGenerator[Delta, None]:
        calls, hints = _finished_calls(request.messages), request.hints
        tree = tuple(hints.get("tree") or ())
        text = str(hints.get("task") or _last_user(request.messages))
        task = read_task(text, tree, str(hints.get("root") or ""))
        if calls and (not calls[-1].ok or calls[-1].name in _WRITERS):
            answer = await self._conclude(task, calls[-1], tree)
            yield TextDelta(json_reply.render("", (), answer))
            return
        writer = _find_tool(request.tools, _WRITERS)
        if writer is None or not task.wants_file:
            # Its answers about a project are invented (V2).
            raise ModelRefused(
                "the small model cannot answer questions about a project, it only writes small "
                "new files",
                fix=STRONGER,
            )
        exists = task.path in tree
        call = await self._look_first(task.path, calls, request.tools) if exists else None
        if call is None:
            async with aclosing(self._write(task, spent)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, str):
                        call = _write_call(writer, task.path, delta, exists)
                    else:
                        yield delta
        if call is not None:
            yield TextDelta(json_reply.render("", (call,), ""))

    async def _look_first(
        self, path: str, calls: Sequence[_FinishedCall], tools: Sequence[ToolSpec]
    ) -> ToolCall | None:
        """Read a file that exists: only what this model wrote itself is replaced."""
        reads = [c for c in calls if c.name in _READERS and c.arguments.get("path") == path]
        reader = _find_tool(tools, _READERS)
        if not reads and reader is not None:
            return ToolCall("", reader.name, {"path": path})
        if not reads or not await asyncio.to_thread(self._written.holds, path, reads[0].text):
            raise ModelRefused(
                f"{path} was not written by the small model, which changes no file of others",
                fix=STRONGER,
            )
        return None

    async def _write(
        self, task: FileTask, spent: _Spent
    ) -> AsyncGenerator[NoticeDelta | str, None]:
        """Yield the content once it passes its check; one notice before the second try."""
        form = task.form
        if form is None:
            endings = ", ".join(dict.fromkeys(form.ending for form in file_forms.FORMS))
            raise ModelRefused(
                f"the embedded model cannot write {task.path}: only {endings}", fix=STRONGER
            )
        if form.english_only and task.japanese:
            raise ModelRefused(
                "the embedded model understands a task for a function only in English",
                fix=f"Say it in English, or: {STRONGER}",
            )
        if not task.phrases:
            raise ModelRefused(
                f"the task does not say what {task.path} should hold", fix="Say it in a few words"
            )
        for attempt in range(2):
            content = await self._complete(_body(task, form, attempt), spent)
            problem = file_forms.problem_with(content, form)
            if problem is None:
                yield content
                return
            if attempt == 0:
                yield NoticeDelta(
                    f"What it wrote for {task.path} was not accepted: {problem}. Again"
                )
        raise BadReply(
            f"the embedded model failed twice at {task.path}: of what it wrote last, {problem}",
            fix=STRONGER,
        )

    async def _conclude(self, task: FileTask, call: _FinishedCall, tree: Sequence[str]) -> str:
        if not call.ok:
            return f"{call.name} failed: {call.text}"
        path, content = str(call.arguments["path"]), str(call.arguments["content"])
        await asyncio.to_thread(self._written.note, path, content)
        return _summary(path, task, tree)

    async def _complete(self, body: Mapping[str, Any], spent: _Spent) -> str:
        return "".join([text async for text in self._generate(body, spent)])

    async def _generate(self, body: Mapping[str, Any], spent: _Spent) -> AsyncGenerator[str, None]:
        async with aclosing(self._runtime.generate(body)) as pieces:
            async for piece in pieces:
                if piece.usage is not None:
                    spent.usage += piece.usage
                    spent.cut = piece.cut
                if piece.text:
                    yield piece.text


def _body(task: FileTask, form: FileForm, attempt: int) -> dict[str, Any]:
    """Return a greedy first attempt; the second one must differ to be worth its time."""
    return {
        "prompt": file_forms.prompt(form, task.text, task.path, reverse=attempt > 0),
        "grammar": file_forms.grammar(form, task.phrases),
        "stop": [file_forms.FENCE],
        "max_tokens": _MOST_CONTENT,
        "temperature": 0.0 if attempt == 0 else 0.4,
        "seed": _SEED + attempt,
    }


@dataclass(frozen=True, slots=True)
class _FinishedCall:
    """A call of this task and its result."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    text: str


def _finished_calls(messages: Sequence[Message]) -> list[_FinishedCall]:
    """Return the calls since the user last spoke, oldest first."""
    finished: list[_FinishedCall] = []
    calls: list[ToolCall] = []
    for message in messages:
        if calls and _is_result(message):
            call = calls.pop(0)
            finished.append(_FinishedCall(call.name, call.arguments, *_outcome(message.content)))
        elif message.role == "user":
            finished, calls = [], []
        elif message.role == "assistant":
            calls = list(message.tool_calls or _calls_in(message.content))
    return finished


def _is_result(message: Message) -> bool:
    return message.role == "tool" or message.content.startswith(_RESULT)


def _calls_in(text: str) -> Sequence[ToolCall]:
    try:
        return json_reply.parse(text).calls
    except NotJson:
        return ()


def _outcome(content: str) -> tuple[bool, str]:
    text = content.partition("\n")[2] if content.startswith(_RESULT) else content
    try:
        shape = json.loads(text)
        ok = bool(shape["ok"])
        return ok, str(shape["result"] if ok else shape["error"])
    except (ValueError, KeyError, TypeError):
        return True, text


def _last_user(messages: Sequence[Message]) -> str:
    spoken = (m.content for m in reversed(messages) if m.role == "user" and not _is_result(m))
    return next(spoken, "")


def _spoken(message: Message) -> dict[str, str]:
    role = "user" if message.role == "tool" else message.role
    return {"role": role, "content": message.content}


def _find_tool(tools: Sequence[ToolSpec], names: frozenset[str]) -> ToolSpec | None:
    return next((tool for tool in tools if tool.name in names), None)


def _write_call(tool: ToolSpec, path: str, content: str, exists: bool) -> ToolCall:
    arguments = {"path": path, "content": content}
    if "mode" in tool.arguments.get("properties", {}):
        # The same task a second time replaces what the first one wrote (E55). A file that the
        # tree does not show may still be there: creating fails then, and changes nothing.
        arguments["mode"] = "overwrite" if exists else "create"
    return ToolCall("", tool.name, arguments)


def _summary(path: str, task: FileTask, tree: Sequence[str]) -> str:
    missing = [name for name in task.other_files if name not in tree]
    if task.japanese:
        rest = f" {'、'.join(missing)} はまだ書いていません。" if missing else ""
        return f"{path} を書きました。{rest}"
    rest = f" Not written: {', '.join(missing)}." if missing else ""
    return f"Wrote {path}.{rest}"
