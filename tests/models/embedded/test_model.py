from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.message import Message, system, tool_result, user
from evercontext.domain.model import Model, Reply, Request, ToolSpec, complete
from evercontext.errors import ModelRefused, ModelUnknown
from evercontext.models.embedded.model import WINDOW, EmbeddedModel
from evercontext.models.json_protocol import JsonProtocol

pytestmark = pytest.mark.embedded


def spec(name: str, *required: str) -> ToolSpec:
    properties = {key: {"type": "string"} for key in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, f"The tool {name}.", schema)


TOOLS = (
    spec("delete_file", "path"),
    spec("list_files", "path"),
    spec("read_file", "path"),
    spec("write_file", "path", "content", "mode"),
)


@pytest.fixture(scope="module")
def loaded() -> Iterator[list[EmbeddedModel]]:
    """The one model all these tests talk to: reading the examples again would take minutes."""
    held: list[EmbeddedModel] = []
    yield held
    for embedded in held:
        asyncio.run(embedded.aclose())


@pytest.fixture
def model(smollm2: Path, loaded: list[EmbeddedModel]) -> Model:
    if not loaded:
        loaded.append(EmbeddedModel(smollm2.resolve().parents[1]))
    return JsonProtocol(loaded[0], tool_role=False)


async def ask(model: Model, task: str, tree: tuple[str, ...] = (), *more: Message) -> Reply:
    hints: dict[str, Any] = {"task": task, "root": "project", "tree": tree}
    messages = [system("You are an agent."), user(task), *more]
    return await complete(model, Request(messages, TOOLS, temperature=0.0, seed=0, hints=hints))


def run(content: str, folder: Path) -> str:
    (folder / "it.py").write_text(content, encoding="utf-8")
    command = [sys.executable, "-I", "-X", "utf8", str(folder / "it.py")]
    return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout.decode()


@pytest.mark.contract("E13", "E14", "E44")
@pytest.mark.parametrize(
    "task", ["Create app/main.py that prints Hello World", "app に Hello World を作成"]
)
async def test_hello_world_is_written_and_runs(model: Model, task: str, tmp_path: Path) -> None:
    reply = await ask(model, task)
    (call,) = reply.tool_calls
    assert call.name == "write_file"
    assert call.arguments["path"] == "app/main.py"
    assert call.arguments["mode"] == "create"
    assert run(call.arguments["content"], tmp_path) == "Hello World\n"
    assert reply.usage.input_tokens > 0 < reply.usage.output_tokens


@pytest.mark.contract("E16")
async def test_after_the_result_it_answers_without_calls(model: Model) -> None:
    task = "Create app/main.py that prints Hello World"
    first = await ask(model, task)
    result = json.dumps({"ok": True, "result": "written", "error": None})
    done = await ask(model, task, (), first.as_message(), tool_result(first.tool_calls[0], result))
    assert not done.tool_calls
    assert "app/main.py" in done.text


async def test_a_failed_call_is_reported_as_failed(model: Model) -> None:
    task = "Create app/main.py that prints Hello World"
    first = await ask(model, task)
    result = json.dumps({"ok": False, "result": None, "error": "read_only: no"})
    done = await ask(model, task, (), first.as_message(), tool_result(first.tool_calls[0], result))
    assert not done.tool_calls
    assert "failed" in done.text
    assert "read_only" in done.text


async def test_other_words_end_in_another_file(model: Model, tmp_path: Path) -> None:
    reply = await ask(model, "Make bin/go.py which prints Blue cheese")
    (call,) = reply.tool_calls
    assert call.arguments["path"] == "bin/go.py"
    assert run(call.arguments["content"], tmp_path) == "Blue cheese\n"


async def test_the_same_task_is_written_the_same_way(model: Model) -> None:
    first = await ask(model, "Create a.json with name set to demo")
    again = await ask(model, "Create a.json with name set to demo")
    assert first.tool_calls[0].arguments == again.tool_calls[0].arguments
    assert json.loads(first.tool_calls[0].arguments["content"]) == {"name": "demo"}


@pytest.mark.parametrize(
    "question", ["What does this project do?", "What does app/main.py do?", "この設計を説明して"]
)
async def test_a_question_about_the_project_is_not_answered(model: Model, question: str) -> None:
    """V2: what it says of a project is invented."""
    with pytest.raises(ModelRefused, match="cannot answer questions") as refusal:
        await ask(model, question, ("app/main.py",))
    assert "evercontext setup" in (refusal.value.fix or "")


@pytest.mark.contract("E55")
async def test_its_own_file_is_read_and_then_replaced(model: Model) -> None:
    """V2: a second try works."""
    task, tree = "Create a.py that prints Bye", ("a.py",)
    first = await ask(model, task)
    wrote = json.dumps({"ok": True, "result": "written", "error": None})
    await ask(model, task, (), first.as_message(), tool_result(first.tool_calls[0], wrote))
    look = await ask(model, task, tree)
    assert [call.name for call in look.tool_calls] == ["read_file"]
    content = first.tool_calls[0].arguments["content"]
    seen = json.dumps({"ok": True, "result": content, "error": None})
    then = await ask(model, task, tree, look.as_message(), tool_result(look.tool_calls[0], seen))
    assert [call.name for call in then.tool_calls] == ["write_file"]
    assert then.tool_calls[0].arguments["mode"] == "overwrite"


async def test_a_file_of_others_is_never_replaced(model: Model) -> None:
    """V2: however small it is."""
    task, tree = "Create b.py that prints Bye", ("b.py",)
    look = await ask(model, task, tree)
    seen = json.dumps({"ok": True, "result": "print(1)", "error": None})
    with pytest.raises(ModelRefused, match="was not written by the small model"):
        await ask(model, task, tree, look.as_message(), tool_result(look.tool_calls[0], seen))


async def test_a_task_that_says_nothing_to_write_is_refused(model: Model) -> None:
    with pytest.raises(ModelRefused, match=r"does not say what a\.py should hold"):
        await ask(model, "a.py")


async def test_of_several_files_it_chooses_one_of_them(model: Model) -> None:
    reply = await ask(model, "Write Hello into a.txt, not into b.txt")
    assert reply.tool_calls[0].arguments["path"] in ("a.txt", "b.txt")


async def test_a_kind_it_cannot_write_is_an_honest_refusal(model: Model) -> None:
    with pytest.raises(ModelRefused, match=r"cannot write src/lib\.rs"):
        await ask(model, "Create src/lib.rs with a function that adds two numbers")


async def test_a_function_is_asked_for_in_english(model: Model) -> None:
    with pytest.raises(ModelRefused, match="only in English"):
        await ask(model, "ops.py に 2つの数を引く関数 sub を作って")


async def test_without_a_tool_to_write_with_nothing_is_called(model: Model) -> None:
    with pytest.raises(ModelRefused, match="only writes small new files"):
        await complete(model, Request([user("Say Hello")], TOOLS[:3], hints={}))


async def test_without_tools_it_just_talks(model: Model) -> None:
    reply = await complete(model, Request([user("Say hello to Bob.")], max_output_tokens=12))
    assert reply.text
    assert reply.usage.output_tokens <= 12


async def test_a_schema_binds_plain_talk(model: Model) -> None:
    schema = {
        "type": "object",
        "properties": {"good": {"type": "boolean"}},
        "required": ["good"],
        "additionalProperties": False,
    }
    reply = await complete(model, Request([user("Is it good?")], response_schema=schema))
    assert isinstance(json.loads(reply.text)["good"], bool)


async def test_it_says_what_it_is(model: Model) -> None:
    info = model.info
    assert (info.name, info.window) == ("embedded:smollm2", WINDOW)
    assert (info.tiny, info.local, info.native_tools) == (True, True, False)
    assert "135M" in (info.notice or "")


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="its runtime is not installed")
async def test_before_the_pull_the_error_names_it(tmp_path: Path) -> None:
    model = EmbeddedModel(tmp_path)
    try:
        with pytest.raises(ModelUnknown, match="evercontext model pull smollm2"):
            await complete(model, Request([user("Hi")]))
    finally:
        await model.aclose()
