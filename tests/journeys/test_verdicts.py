"""V1, V3, V6, V11, P6: what is said at the end of a task is true, on every surface."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evercontext.process.sandbox import Layer, choose
from evercontext.testing import tiny_repository
from tests.cli.command import Ended, evercontext
from tests.journeys.person import ESCAPE, Person
from tests.journeys.story import call, script, write
from tests.models.wire_server import Answer, ndjson, sse, wire_server
from tests.tiers import slow

GOOD = "def test_one():\n    assert 1 + 1 == 2\n"
SAID = {"text": "Done, and all tests pass!"}
needs_sandbox = pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no sandbox here")


@pytest.fixture(autouse=True)
def _own_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "project", {"a.py": "x = 1\n"})


def run(project: Path, model: str, *more: str) -> tuple[Ended, dict[str, Any]]:
    ended = evercontext("run", "-t", "do it", "-m", model, "--json", *more, cwd=project)
    return ended, json.loads(ended.out)


def turns(tmp_path: Path, *given: dict[str, Any]) -> str:
    return script(tmp_path / "s.jsonl", *given)


def printing(tmp_path: Path, text: str, code: int = 0) -> str:
    """A check that prints what a test runner prints."""
    program = tmp_path / "project" / "runner.py"
    program.write_text(f"print({text!r})\nraise SystemExit({code})\n")
    return f"{sys.executable} runner.py"


NO_TESTS = [
    ("\n----\nRan 0 tests in 0.000s\n\nOK", 0),
    slow("No tests found, exiting with code 1", 1),
]
"""Of two runners; tests/workspace/test_check_counts.py has the others."""


@needs_sandbox
@pytest.mark.contract("E35")
@pytest.mark.parametrize(("words", "code"), NO_TESTS)
@pytest.mark.slow
def test_a_wanted_check_that_found_nothing_verifies_nothing(
    project: Path, tmp_path: Path, words: str, code: int
) -> None:
    """V1: a green linter beside it does not make it verified."""
    check = printing(tmp_path, words, code)
    model = turns(tmp_path, write("b.py", "y = 2\n"), SAID)
    ended, told = run(project, model, "--lint-cmd", "true", "--test-cmd", check)
    assert (ended.code, told["outcome"], told["verified"]) == (0, "done", "not verified")
    assert "test: " in told["note"]
    fixed = evercontext("fix", "--lint-cmd", "true", "--test-cmd", check, "--json", cwd=project)
    assert (fixed.code, json.loads(fixed.out)["verdict"]) == (1, "not verified")


@needs_sandbox
@pytest.mark.contract("E35")
@pytest.mark.slow
def test_a_wanted_check_that_cannot_start_verifies_nothing(project: Path, tmp_path: Path) -> None:
    """V1: and `fix` is not green."""
    model = turns(tmp_path, write("b.py", "y = 2\n"), SAID)
    checks = ("--lint-cmd", "true", "--test-cmd", "no-such-runner -q")
    ended, told = run(project, model, *checks)
    assert (ended.code, told["verified"]) == (0, "not verified")
    assert "no-such-runner" in told["note"]
    fixed = evercontext("fix", *checks, cwd=project)
    assert fixed.code == 1
    assert "not green" in fixed.out
    shown = evercontext("trace", "show", cwd=project)
    assert shown.code == 0


@needs_sandbox
def test_pytest_without_a_test_verifies_nothing(project: Path, tmp_path: Path) -> None:
    """V1: the real pytest, exit code 5."""
    model = turns(tmp_path, write("b.py", "y = 2\n"), SAID)
    pytest_cmd = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    _, told = run(project, model, "--lint-cmd", "true", "--test-cmd", pytest_cmd)
    assert told["verified"] == "not verified"
    assert "no tests" in told["note"]


@needs_sandbox
@pytest.mark.slow
def test_what_a_plan_asks_for_verifies_once_it_passed_after_the_last_change(
    project: Path, tmp_path: Path
) -> None:
    """V1: a check of an earlier task runs again after the changes of a later one."""
    plan = plan_file(
        tmp_path,
        {"id": "a", "title": "do a", "checks": ["grep -q 1 a.py"]},
        {"id": "b", "title": "do b", "depends_on": ["a"]},
    )
    good = turns(tmp_path, *part("a", write("b.py", "y\n")), *part("b", write("c.py", "z\n")))
    _, told = run_plan(project, plan, good)
    assert (told["exit_code"], told["verified"]) == (0, "verified")
    bad = turns(tmp_path, *part("a", write("b.py", "2\n")), *part("b", write("a.py", "z\n")))
    _, told = run_plan(project, plan, bad)
    assert (told["exit_code"], told["verified"]) == (4, "red")


def plan_file(tmp_path: Path, *tasks: dict[str, Any]) -> str:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"task": "do it", "tasks": tasks}))
    return str(file)


def part(id: str, *given: dict[str, Any]) -> list[dict[str, Any]]:
    when = f"Your part of it now: do {id}\\b"
    return [{"when": when, **turn} for turn in (*given, {"text": f"{id} is done"})]


def run_plan(project: Path, plan: str, model: str, *more: str) -> tuple[Ended, dict[str, Any]]:
    ended = evercontext(
        "run", "--plan", plan, "-m", model, "--json", "--no-auto-test", *more, cwd=project
    )
    return ended, json.loads(ended.out)


BROKEN = "def total(items):\n    return sum(itms)\n"
RIGHT = "def total(items):\n    return sum(items)\n"
TEST_TOTAL = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
OWN = f"{sys.executable} -m pytest -q -p no:cacheprovider test_shop.py"


@needs_sandbox
@pytest.mark.contract("E41", "E54")
@pytest.mark.slow
def test_a_plan_whose_repair_ended_green_is_done_and_kept(tmp_path: Path) -> None:
    """V3: the task's own checks run again, decide, and the tasks that wait for it run."""
    project = tiny_repository(tmp_path / "project", {"test_shop.py": TEST_TOTAL})
    tasks: list[dict[str, Any]] = [
        {"id": "a", "title": "do a"},
        {"id": "b", "title": "do b", "depends_on": ["a"], "checks": [OWN]},
        {"id": "c", "title": "do c", "depends_on": ["b"]},
    ]
    model = turns(
        tmp_path,
        *part("a", write("README.md", "shop\n")),
        *part("b", write("shop.py", BROKEN)),
        *part("c", write("c.txt", "c\n")),
    )
    plan = plan_file(tmp_path, *tasks)
    ended, told = run_plan(project, plan, model, "--rollback-on-failure")
    assert ended.code == 0, ended.err
    assert (told["tasks_done"], told["verified"]) == (3, "verified")
    assert {task["status"] for task in told["tasks"]} == {"done"}
    assert (project / "shop.py").read_text() == RIGHT
    assert (project / "c.txt").exists()
    assert told["files_rolled_back"] == []


@needs_sandbox
@pytest.mark.contract("E54")
@pytest.mark.slow
def test_a_finished_task_is_not_begun_anew(project: Path, tmp_path: Path) -> None:
    """V3: what ended red and was made right by hand is only checked; red alone is not redone."""
    plan = plan_file(
        tmp_path,
        {"id": "a", "title": "do a", "checks": ["grep -q right a.py"]},
        {"id": "b", "title": "do b", "depends_on": ["a"]},
    )
    ended, told = run_plan(
        project, plan, turns(tmp_path, *part("a", write("a.py", "wrong\n"))), "--no-repair"
    )
    assert (ended.code, told["tasks_done"]) == (4, 0)
    (project / "a.py").write_text("right\n")
    rest = turns(tmp_path, *part("b", write("b.py", "y\n")))
    again = evercontext("run", "--resume", "last", "-m", rest, "--json", cwd=project)
    assert again.code == 0, again.err
    assert (project / "a.py").read_text() == "right\n"
    assert json.loads(again.out)["tasks_done"] == 2


@needs_sandbox
@pytest.mark.slow
def test_a_single_task_that_ended_red_is_checked_and_not_done_again(
    project: Path, tmp_path: Path
) -> None:
    """V3: a run without a plan, too."""
    (project / "a.py").write_text("x = 2\n")
    checks = ("--test-cmd", "grep -q 2 a.py", "--no-repair")
    ended, _ = run(project, turns(tmp_path, write("a.py", "x = 3\n"), SAID), *checks)
    assert ended.code == 4
    (project / "a.py").write_text("x = 2\n")
    nothing = turns(tmp_path, {"text": "never asked", "when": "no such words"})
    again = evercontext("run", "--resume", "last", "-m", nothing, "--json", *checks, cwd=project)
    assert again.code == 0, again.err
    assert json.loads(again.out)["verified"] == "verified"


COMMAND = {"tool_calls": [call("run_command", command="python3 -c 'raise SystemExit(3)'")]}


@needs_sandbox
@pytest.mark.contract("E35")
def test_a_failed_command_and_nothing_changed_is_not_done(project: Path, tmp_path: Path) -> None:
    """V6"""
    ended, told = run(project, turns(tmp_path, COMMAND, {"text": "It is deployed."}))
    assert (ended.code, told["outcome"]) == (1, "failed")
    assert "exit code 3" in told["error"]["message"]
    grep = {"tool_calls": [call("run_command", command="grep nothing a.py")]}
    ended, told = run(project, turns(tmp_path, grep, {"text": "It is not there."}))
    assert (ended.code, told["outcome"]) == (0, "done"), "grep answers by its exit code"


LOST = {"tool_calls": [call("edit_file", path="b.py", edits=[{"old": "x", "new": "y"}])]}
LOGS = {"tool_calls": [call("run_command", command="echo x > log.txt; false")]}
PASSES = {"tool_calls": [call("run_command", command="test -f a.py")]}
APPENDS = {"tool_calls": [call("run_command", command="echo y >> a.py")]}
GARBLED = {"tool_calls": [{"name": "write_file", "arguments": "{path: b.py"}]}
ENDINGS = {
    "a failed edit and a failed command that left a file": ([LOST, LOGS], "failed"),
    "a failed edit and a command that changed nothing": ([LOST, PASSES], "failed"),
    "a failed command that left a file": ([LOGS], "failed"),
    "an edit that could not be read": ([GARBLED], "failed"),
    "a failed edit that a command made good": ([LOST, APPENDS], "done"),
    "a failed edit and another one": ([LOST, write("b.py", "y = 2\n")], "done"),
}
QUICK = ("an edit that could not be read", "a failed edit that a command made good")


@needs_sandbox
@pytest.mark.contract("E35")
@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in ENDINGS])
def test_what_failed_calls_left_undone_is_not_done(
    project: Path, tmp_path: Path, name: str
) -> None:
    """V6: nothing was achieved because calls failed, whatever the model says of it."""
    made, outcome = ENDINGS[name]
    ended, told = run(project, turns(tmp_path, *made, SAID))
    assert (ended.code, told["outcome"]) == (0 if outcome == "done" else 1, outcome)


@pytest.mark.contract("E35")
@pytest.mark.slow
def test_a_file_that_is_not_there_does_not_fail_a_right_answer(
    project: Path, tmp_path: Path
) -> None:
    """V6"""
    look = {"tool_calls": [call("read_file", path="setup.py")]}
    ended, told = run(project, turns(tmp_path, look, {"text": "There is no setup.py."}))
    assert (ended.code, told["outcome"]) == (0, "done")
    lost = {"tool_calls": [call("move_file", path="setup.py", to="b.py")]}
    read = {"tool_calls": [call("read_file", path="a.py")]}
    ended, told = run(project, turns(tmp_path, lost, read, {"text": "Moved."}))
    assert (ended.code, told["outcome"]) == (1, "failed"), "a look afterwards makes nothing good"


@needs_sandbox
def test_a_persons_own_no_and_esc_are_no_errors(project: Path, tmp_path: Path) -> None:
    """V6: nor is a command that failed, where somebody reads the answer."""
    model = turns(
        tmp_path,
        write("b.py", "y = 2\n"),
        {"text": "Then not."},
        {"tool_calls": [call("run_command", command="sleep 60")]},
    )
    with Person(project, "chat", "-m", model) as person:
        person.sees("agent mode")
        person.says("make b")
        person.sees("b.py would be created", "4 >")
        person.presses("4")
        person.sees("instead?")
        person.says("")
        person.sees("Then not.", "denied", "note: not approved")
        person.says("wait")
        person.sees("sleep 60", "/4")
        person.presses("1")
        person.sees("run_command sleep 60")
        person.presses(ESCAPE)
        person.sees("cancelled", "note: stopped by the user")
        assert "error:" not in person.shown


def test_a_chat_that_looked_for_no_check_does_not_say_that_there_is_none(
    project: Path, tmp_path: Path
) -> None:
    """V1: beside the project's tests it said "no check is named or found"."""
    (project / "test_a.py").write_text("def test_a():\n    pass\n")
    model = turns(tmp_path, write("b.py", "y = 2\n"), SAID)
    ended = evercontext("chat", "-m", model, "--yes", cwd=project, stdin="make b\n")
    assert "note: no check was looked for" in ended.out + ended.err
    assert "no check is named or found" not in ended.out + ended.err


@pytest.mark.contract("E42")
def test_failing_calls_are_stopped_however_different_they_are(
    project: Path, tmp_path: Path
) -> None:
    """V11"""
    calls = [{"tool_calls": [call("read_file", path=f"no-{n}.py")]} for n in range(40)]
    ended, told = run(project, turns(tmp_path, *calls, {"text": "I give up."}))
    assert (ended.code, told["outcome"], told["num_turns"]) == (6, "limit", 10)
    assert "10 calls in a row failed" in told["error"]["message"]


def openai_answer(text: str, finish: str) -> Answer:
    chunks = [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        }
    ]
    return Answer(sse(*chunks, done=True))


def anthropic_answer(text: str, stop: str) -> Answer:
    usage = {"input_tokens": 1, "output_tokens": 1}
    # fmt: off
    message: dict[str, Any] = {
               "id": "m", "type": "message", "role": "assistant", "model": "claude-x",
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": usage},
        {"type": "message_stop"},
    ]
    # fmt: on
    return Answer(sse(*events, event_names=True), headers={"content-type": "text/event-stream"})


def ollama_answer(text: str, stop: str) -> Answer:
    line = {"model": "m", "message": {"role": "assistant", "content": text}}
    last = {
        **line,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": stop,
    }
    return Answer(ndjson({**line, "done": False}, last))


SHOW = Answer(
    [
        json.dumps(
            {
                "capabilities": ["completion", "tools"],
                "template": "",
                "model_info": {"x.context_length": 8192},
            }
        ).encode()
    ]
)


@pytest.mark.parametrize(
    ("provider", "answer", "word", "end", "outcome"),
    [
        ("openai", openai_answer, "length", "stop", "limit"),
        slow("openai", openai_answer, "content_filter", "stop", "refused"),
        slow("openai", openai_answer, "MAX_TOKENS", "stop", "limit"),
        slow("anthropic", anthropic_answer, "max_tokens", "end_turn", "limit"),
        ("anthropic", anthropic_answer, "refusal", "end_turn", "refused"),
        ("ollama", ollama_answer, "length", "stop", "limit"),
    ],
)
@pytest.mark.slow
async def test_an_answer_that_was_cut_or_withheld_is_not_done(
    project: Path, provider: str, answer: Any, word: str, end: str, outcome: str
) -> None:
    """P6: the model is asked to go on once; the second time it is a limit, or refused."""
    async with wire_server() as server:
        env = {
            "OPENAI_API_KEY": "sk-x",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "ANTHROPIC_API_KEY": "sk-x",
            "ANTHROPIC_BASE_URL": server.url,
            "EC_OLLAMA_ENDPOINT": server.url,
        }
        arguments = ("run", "-t", "say it", "-m", f"{provider}:claude-x", "--json")
        shown = [SHOW] if provider == "ollama" else []
        server.will(*shown, answer("The first ", word), answer("half.", end))
        whole = await asyncio.to_thread(evercontext, *arguments, cwd=project, env=env)
        server.will(*shown, answer("The first ", word), answer("half", word))
        cut = await asyncio.to_thread(evercontext, *arguments, cwd=project, env=env)
    assert whole.code == 0, whole.err
    assert json.loads(whole.out)["result"] == "The first half."
    told = json.loads(cut.out)
    assert (told["outcome"], told["is_error"]) == (outcome, True)
    assert cut.code == {"limit": 6, "refused": 2}[outcome]
