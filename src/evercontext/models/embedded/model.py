"""The embedded model behind the same interface as every other one.

It is a text model: with tools in the request it answers in Hermes JSON, which ``JsonProtocol``
reads. The parts it must get right are generated one by one (which file, then its content, in the
fenced form small models were trained on), checked, and put into that JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from evercontext.models.embedded import assignment, checks, examples, grammar, weights
from evercontext.models.embedded.assignment import Assignment
from evercontext.models.embedded.gloss import is_japanese
from evercontext.models.embedded.runtime import Runtime
from evercontext.models.embedded.written_files import WrittenFiles
from evercontext.models.lenient_json import NotJson

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
        self._own_files = WrittenFiles(home)
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
        made = _calls_made(request.messages)
        hints = request.hints
        asked = str(hints.get("task") or _last_user(request.messages))
        tree = tuple(hints.get("tree") or ())
        task = assignment.read(asked, tree, str(hints.get("root") or ""))
        if made and (not made[-1].ok or made[-1].name in _WRITERS):
            answer = await self._conclude(asked, task, made[-1], tree)
            yield TextDelta(json_reply.render("", (), answer))
            return
        writer = _find_tool(request.tools, _WRITERS)
        if writer is None or not task.wants_file:
            # What it says of a project is invented (V2).
            raise ModelRefused(
                "the small model cannot answer questions about a project, it only writes small "
                "new files",
                fix=STRONGER,
            )
        path = await self._choose_path(task, spent)
        exists = path in tree
        call = await self._look_first(path, made, request.tools) if exists else None
        if call is None:
            async with aclosing(self._write(task, path, spent)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, str):
                        call = _writing(writer, path, delta, exists)
                    else:
                        yield delta
        if call is not None:
            yield TextDelta(json_reply.render("", (call,), ""))

    async def _look_first(
        self, path: str, made: Sequence[_Made], tools: Sequence[ToolSpec]
    ) -> ToolCall | None:
        """A file that exists is read first: only what this model wrote itself is replaced."""
        reads = [m for m in made if m.name in _READERS and m.arguments.get("path") == path]
        reader = _find_tool(tools, _READERS)
        if not reads and reader is not None:
            return ToolCall("", reader.name, {"path": path})
        if not reads or not await asyncio.to_thread(self._own_files.holds, path, reads[0].text):
            raise ModelRefused(
                f"{path} was not written by the small model, which changes no file of others",
                fix=STRONGER,
            )
        return None

    async def _choose_path(self, task: Assignment, spent: _Spent) -> str:
        if len(task.writable) == 1:
            return task.writable[0]
        prompt = examples.path_prompt(task.english)
        body = _body(prompt, grammar.one_of(task.writable), 40)
        return await self._whole(body, spent)

    async def _write(
        self, task: Assignment, path: str, spent: _Spent
    ) -> AsyncGenerator[NoticeDelta | str, None]:
        """Yield the content once it passes its check; one notice before the second try."""
        kind = assignment.kind_of(path)
        if kind is None:
            endings = ", ".join(assignment.KINDS)
            raise ModelRefused(
                f"the embedded model cannot write {path}: only {endings}", fix=STRONGER
            )
        if not task.phrases:
            raise ModelRefused(
                f"the task does not say what {path} should hold", fix="Say it in a few words"
            )
        for attempt in range(2):
            prompt = examples.content_prompt(task, path, kind, attempt)
            body = _body(prompt, grammar.content(kind, task), _MOST_CONTENT, attempt)
            content = await self._whole(body, spent)
            problem = checks.problem_with(content, kind, task)
            if problem is None:
                yield content
                return
            if attempt == 0:
                yield NoticeDelta(f"What it wrote for {path} was not accepted: {problem}. Again")
        raise BadReply(
            f"the embedded model failed twice at {path}: of what it wrote last, {problem}",
            fix=STRONGER,
        )

    async def _conclude(
        self, asked: str, task: Assignment, made: _Made, tree: Sequence[str]
    ) -> str:
        if not made.ok:
            return f"{made.name} failed: {made.text}"
        path, content = str(made.arguments["path"]), str(made.arguments["content"])
        await asyncio.to_thread(self._own_files.note, path, content)
        return _wrote(path, asked, task, tree)

    async def _whole(self, body: Mapping[str, Any], spent: _Spent) -> str:
        return "".join([text async for text in self._generate(body, spent)])

    async def _generate(self, body: Mapping[str, Any], spent: _Spent) -> AsyncGenerator[str, None]:
        async with aclosing(self._runtime.generate(body)) as pieces:
            async for piece in pieces:
                if piece.usage is not None:
                    spent.usage += piece.usage
                    spent.cut = piece.cut
                if piece.text:
                    yield piece.text


def _body(prompt: str, form: str, most: int, attempt: int = 0) -> dict[str, Any]:
    """A greedy first attempt; the second one must differ to be worth its time."""
    return {
        "prompt": prompt,
        "grammar": form,
        "stop": [grammar.FENCE],
        "max_tokens": most,
        "temperature": 0.0 if attempt == 0 else 0.4,
        "seed": _SEED + attempt,
    }


@dataclass(frozen=True, slots=True)
class _Made:
    """A call of this task and its result."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    text: str


def _calls_made(messages: Sequence[Message]) -> list[_Made]:
    """Return the calls since the user last spoke, oldest first."""
    made: list[_Made] = []
    calls: list[ToolCall] = []
    for message in messages:
        if calls and _is_result(message):
            call = calls.pop(0)
            made.append(_Made(call.name, call.arguments, *_outcome(message.content)))
        elif message.role == "user":
            made, calls = [], []
        elif message.role == "assistant":
            calls = list(message.tool_calls or _calls_in(message.content))
    return made


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


def _writing(tool: ToolSpec, path: str, content: str, exists: bool) -> ToolCall:
    arguments = {"path": path, "content": content}
    if "mode" in tool.arguments.get("properties", {}):
        # The same task a second time replaces what the first one wrote (E55). A file that the
        # tree does not show may still be there: creating fails then, and changes nothing.
        arguments["mode"] = "overwrite" if exists else "create"
    return ToolCall("", tool.name, arguments)


def _wrote(path: str, asked: str, task: Assignment, tree: Sequence[str]) -> str:
    left = [name for name in task.named if name != path and name not in tree]
    if is_japanese(asked):
        rest = f" {'、'.join(left)} はまだ書いていません。" if left else ""
        return f"{path} を書きました。{rest}"
    rest = f" Not written: {', '.join(left)}." if left else ""
    return f"Wrote {path}.{rest}"
