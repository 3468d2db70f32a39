"""Run tasks with the installed command: write a file, repeat the task, refuse by policy, trace."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Ended, evercontext, home
from tests.journeys.story import call, digest, script, write

TASK = "app に Hello World を作成"
HELLO = 'print("Hello World")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def hello(tmp_path: Path) -> str:
    return script(tmp_path / "hello.jsonl", write("app/main.py", HELLO), {"text": "Made it."})


def run(project: Path, model: str, *more: str, task: str = TASK) -> Ended:
    return evercontext("run", "--task", task, "--model", model, *more, cwd=project)


def trace_of(ended: Ended) -> str:
    found = re.search(r"^trace ([0-9a-f-]{36})$", ended.err, re.MULTILINE)
    assert found, ended.err
    return found[1]


@pytest.mark.contract("E34", "E35", "E44", "E7")
def test_a_task_writes_a_file_and_shows_the_diff(project: Path, hello: str) -> None:
    ended = run(project, hello)
    assert ended.code == 0, ended.err
    assert ended.out == "Made it.\n"
    assert (project / "app/main.py").read_text() == HELLO
    said = subprocess.run(
        [sys.executable, "app/main.py"], cwd=project, capture_output=True, text=True, check=True
    )
    assert said.stdout == "Hello World\n"
    assert "write_file app/main.py  ok" in ended.err
    assert '1 + print("Hello World")' in ended.err
    assert "done  1 file changed" in ended.err
    assert f"evercontext undo {trace_of(ended)[:8]}" in ended.err


@pytest.mark.contract("E44", "E55")
def test_the_same_task_again_succeeds_and_changes_nothing(project: Path, hello: str) -> None:
    assert run(project, hello).code == 0
    before = digest(project)
    again = run(project, hello)
    assert again.code == 0, again.err
    assert digest(project) == before
    assert "app/main.py unchanged" in again.err
    assert "done  0 files changed" in again.err


@pytest.mark.slow
@pytest.mark.contract("R4", "N23")
def test_a_second_session_remembers_what_the_first_one_did(
    project: Path, hello: str, tmp_path: Path
) -> None:
    assert run(project, hello).code == 0
    asked = "Hello World は何というファイルですか"
    told = {"when": "(?s)<memories>.*app/main.py.*</memories>", "text": "app/main.py です。"}
    recalled = {"when": "app/main.py", "text": "Recalled."}
    model = script(tmp_path / "second.jsonl", told)
    assert run(project, model, task=asked).out == "app/main.py です。\n"
    model = script(
        tmp_path / "third.jsonl",
        {"tool_calls": [call("recall", query="Hello World")]},
        recalled,
    )
    assert run(project, model, task="?").out == "Recalled.\n"
    found = evercontext("memory", "search", "Hello World", "--json", cwd=project)
    assert "app/main.py" in json.loads(found.out)["results"][0]["content"]


@pytest.mark.slow
@pytest.mark.contract("E1", "E8", "E46", "E50")
def test_the_next_task_is_planned_from_what_the_first_one_left(
    project: Path, hello: str, tmp_path: Path
) -> None:
    """Evidence and memory reach the planner; another model does it; the log counts it."""
    assert run(project, hello).code == 0
    tasks = [
        {"id": "greet", "title": "Greet Ada", "files": ["app/main.py"], "checks": ["test -e app"]},
        {"id": "note", "title": "Note it", "files": ["NOTES.md"], "depends_on": ["greet"]},
    ]
    shown = r"app/main\.py L1-L1"
    planner = script(
        tmp_path / "planner.jsonl",
        {"role": "planner", "when": shown, "text": json.dumps({"tasks": tasks})},
    )
    model = script(
        tmp_path / "worker.jsonl",
        {"when": "now: Greet Ada", **write("app/main.py", 'print("Hello Ada")\n')},
        {"when": "now: Greet Ada", "text": "Greeted."},
        {"when": "now: Note it", **write("NOTES.md", "Ada is greeted.\n")},
        {"when": "now: Note it", "text": "Noted."},
    )
    more = ("--planner", planner, "--no-auto-test")
    ended = run(project, model, *more, task="app の Hello World を Ada 宛てにする")
    assert ended.code == 0, ended.err
    assert "done  2 of 2 tasks done, 2 files changed" in ended.err
    seen = evercontext("trace", "show", trace_of(ended)).out
    assert "evidence app の Hello World を Ada 宛てにする → app/main.py" in seen
    assert "recalled 1 memory:" in seen
    told = json.loads(evercontext("kpi", "--all", "--json").out)
    assert told["evidence_match"] == {"hits": 1, "of": 1, "rate": 1.0}
    assert told["task_success"]["rate"] == 1.0


@pytest.mark.slow
@pytest.mark.contract("L8", "L9", "L19")
def test_a_document_about_it_is_judged_improved_and_taken_back(
    project: Path, tmp_path: Path
) -> None:
    about = script(tmp_path / "about.jsonl", write("README.md", "TODO\n"), {"text": "Written."})
    run(project, about, task="README を書いて")
    judged = evercontext("evaluate", "README.md", "--judge", "local", cwd=project)
    assert judged.code == 4
    better = "# Hello\n\nIt prints one line.\n\n## Usage\n\n```sh\npython app/main.py\n```\n"
    writer = script(tmp_path / "better.jsonl", {"role": "writer", "text": better})
    flags = ("--in-place", "--judge", "local", "--model", writer, "--target", "2", "--json")
    told = json.loads(evercontext("improve", "README.md", *flags, cwd=project).out)
    assert (project / "README.md").read_text() == better
    records = evercontext("evaluate", "--history", "README.md", "--json", cwd=project).out
    assert [record["door"] for record in json.loads(records)] == ["evaluate", "improve", "improve"]
    shown = evercontext("trace", "show", told["trace_id"], "--json").out.splitlines()
    states = [json.loads(line)["data"]["state"] for line in shown]
    assert (states[0], states[-1]) == ("evaluating", "done")
    assert evercontext(*told["undo"].split()[1:], cwd=project).code == 0
    assert (project / "README.md").read_text() == "TODO\n"


@pytest.mark.contract("E26", "E27", "E28")
def test_one_trace_shows_it_all(project: Path, hello: str) -> None:
    trace = trace_of(run(project, hello))
    shown = evercontext("trace", "show", trace, "--json")
    events = [json.loads(line) for line in shown.out.splitlines()]
    assert {event["trace_id"] for event in events} == {trace}
    kinds = [event["type"] for event in events]
    order = ["task", "plan", "step", "tool_result", "diff", "final"]
    assert [kinds.index(kind) for kind in order] == sorted(kinds.index(kind) for kind in order)
    assert TASK in evercontext("trace", "list", "--all").out


@pytest.mark.contract("E35", "E44")
@pytest.mark.parametrize(
    ("path", "word"),
    [("../outside.py", "escapes"), (".git/config", "protected"), ("tool.exe", "extension")],
)
def test_what_policy_refuses_exits_2(path: str, word: str, project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write(path, "x"), {"text": "Done!"})
    before = digest(project)
    ended = run(project, model)
    assert ended.code == 2
    assert "refused" in ended.err
    assert word in ended.err
    assert digest(project) == before
    assert not (tmp_path / "outside.py").exists()


@pytest.mark.contract("E35", "E44")
def test_a_missing_file_is_fed_back_to_the_model(project: Path, tmp_path: Path) -> None:
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("read_file", path="app/main.py")]},
        {"when": "not_found", **write("app/main.py", HELLO)},
        {"text": "It was missing, so I made it."},
    )
    ended = run(project, model)
    assert ended.code == 0, ended.err
    assert "read_file app/main.py  failed" in ended.err
    assert (project / "app/main.py").read_text() == HELLO


@pytest.mark.contract("E35", "E40")
def test_json_that_is_invalid_twice_exits_3(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"raw": "I would rather chat."}, {"raw": "{still no"})
    ended = run(project, model)
    assert ended.code == 3
    assert "error: " in ended.err
    assert digest(project) == {}


@pytest.mark.contract("E13", "E40")
def test_json_that_is_invalid_once_is_asked_for_again(project: Path, tmp_path: Path) -> None:
    good = {
        "tool_calls": [
            {
                "name": "write_file",
                "parameters": {"path": "./app/main.py", "content": HELLO, "mode": "create"},
            }
        ]
    }
    model = script(
        tmp_path / "s.jsonl",
        {"raw": "Sure! Here it is:"},
        {"raw": f"```json\n{json.dumps(good)}\n```"},
        {"raw": json.dumps({"final_answer": "Made it."})},
    )
    ended = run(project, model)
    assert ended.code == 0, ended.err
    assert (project / "app/main.py").read_text() == HELLO


@pytest.mark.contract("E34", "E44")
def test_a_dry_run_shows_the_diff_and_writes_nothing(project: Path, hello: str) -> None:
    (project / "app").mkdir()
    (project / "app/main.py").write_text("print('old')\n")
    before = digest(project)
    ended = run(project, hello, "--dry-run")
    assert ended.code == 0, ended.err
    assert digest(project) == before
    assert [path.name for path in project.iterdir()] == ["app"]
    assert "nothing is written" in ended.err
    patch = ended.out.encode()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "apply", "-"], cwd=project, input=patch, check=True)
    assert (project / "app/main.py").read_text() == HELLO


@pytest.mark.contract("E34")
def test_the_root_is_what_the_flag_says(project: Path, hello: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    environment = {"EC_APP_ROOT": str(tmp_path)}
    ended = evercontext(
        "run", "-p", TASK, "-m", hello, "--root", "../other", cwd=project, env=environment
    )
    assert ended.code == 0, ended.err
    assert (other / "app/main.py").read_text() == HELLO


@pytest.mark.contract("E34")
@pytest.mark.slow
def test_stdin_joins_the_task(project: Path, tmp_path: Path) -> None:
    model = script(
        tmp_path / "s.jsonl",
        {"when": "(?s)Explain this.*<stdin>\nValueError: 七", "text": "I see."},
    )
    ended = evercontext(
        "run", "--task", "Explain this", "--model", model, cwd=project, stdin="ValueError: 七\n"
    )
    assert (ended.code, ended.out) == (0, "I see.\n")
    alone = script(tmp_path / "t.jsonl", {"when": "^Say hi$", "text": "hi"})
    ended = evercontext("run", "--model", alone, cwd=project, stdin="Say hi\n")
    assert (ended.code, ended.out) == (0, "hi\n")


@pytest.mark.contract("E35")
def test_asking_without_a_terminal_exits_5(project: Path, hello: str) -> None:
    ended = run(project, hello, "--ask")
    assert ended.code == 5
    assert "--yes" in ended.err
    assert digest(project) == {}


@pytest.mark.contract("E35")
@pytest.mark.parametrize(
    ("flags", "turns"),
    [(("--max-turns", "1"), 1), (("--timeout", "0.001"), 1)],
)
def test_a_limit_exits_6_and_says_which(
    flags: tuple[str, ...], turns: int, project: Path, hello: str
) -> None:
    ended = run(project, hello, *flags)
    assert ended.code == 6
    assert flags[0] in ended.err


@pytest.mark.contract("E35", "E40")
@pytest.mark.slow
def test_an_outage_is_tried_again_then_another_model_takes_over(
    project: Path, tmp_path: Path, hello: str
) -> None:
    away = script(
        tmp_path / "away.jsonl", *[{"error": {"code": "model_unavailable", "retry_after": 0}}] * 6
    )
    ended = run(project, away)
    assert ended.code == 75
    ended = run(project, away, "--fallback-model", hello)
    assert ended.code == 0, ended.err
    assert (project / "app/main.py").read_text() == HELLO
    assert hello in ended.err


def test_one_json_object_at_the_end(project: Path, hello: str) -> None:
    ended = run(project, hello, "--json")
    told = json.loads(ended.out)
    assert ended.code == told["exit_code"] == 0
    assert (told["type"], told["status"], told["is_error"]) == ("result", "success", False)
    assert told["result"] == "Made it."
    assert told["files_changed"] == ["app/main.py"]
    assert told["changes"][0]["kind"] == "created"
    assert told["num_turns"] == 2
    assert told["model"] == hello
    assert {"session_id", "duration_ms", "total_cost_usd", "usage"} <= told.keys()


def test_a_stream_of_json_objects(project: Path, hello: str) -> None:
    ended = run(project, hello, "--output-format", "stream-json")
    told = [json.loads(line) for line in ended.out.splitlines()]
    kinds = [one["type"] for one in told]
    assert kinds[:2] == ["init", "message"]
    wanted = ["init", "tool_use", "tool_result", "file_change", "result"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    assert {one["schema_version"] for one in told} == {1}
    assert all("timestamp" in one for one in told)
    by_kind = {one["type"]: one for one in told}
    assert by_kind["tool_use"]["parameters"]["path"] == "app/main.py"
    assert by_kind["tool_result"]["tool_id"] == by_kind["tool_use"]["tool_id"]
    assert by_kind["result"]["trace_id"] == by_kind["init"]["trace_id"]


def test_a_failed_task_is_an_error_in_json_too(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write("../x.py", "x"), {"text": "Done!"})
    told = json.loads(run(project, model, "--json").out)
    assert (told["is_error"], told["outcome"], told["exit_code"]) == (True, "refused", 2)
    assert told["error"]["message"]


@pytest.mark.case(135)
@pytest.mark.slow
def test_a_secret_reaches_neither_screen_nor_trace(project: Path, tmp_path: Path) -> None:
    canary = "canary-4f1d9a77e2"
    (project / "notes.txt").write_text(f"the password is {canary}\n")
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("read_file", path="notes.txt")]},
        write("copy.txt", f"{canary}\n"),
        {"text": f"It is {canary}."},
    )
    for style in ("text", "json", "stream-json"):
        ended = evercontext(
            "run",
            "-t",
            "Read",
            "-m",
            model,
            "--output-format",
            style,
            cwd=project,
            env={"MY_PASSWORD": canary},
        )
        assert ended.code == 0, ended.err
        assert canary not in ended.out + ended.err
    for file in home().rglob("*.jsonl"):
        assert canary not in file.read_text()


@pytest.mark.case(95)
def test_escape_sequences_of_a_model_are_written_out(project: Path, tmp_path: Path) -> None:
    attack = "\x1b]52;c;b3duZWQ=\x07"
    model = script(tmp_path / "s.jsonl", write("a.txt", f"{attack}\n"), {"text": f"Done {attack}"})
    ended = run(project, model)
    assert "\x1b" not in ended.out + ended.err
    assert "\\x1b]52;c;" in ended.out
    assert "\\x1b]52;c;" in ended.err


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.contract("E44", "E55")
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("smollm2")
def test_the_embedded_model_writes_hello_world(project: Path) -> None:
    for _ in range(2):
        ended = run(project, "embedded:smollm2")
        assert ended.code == 0, ended.err
        said = subprocess.run(
            [sys.executable, "app/main.py"], cwd=project, capture_output=True, text=True, check=True
        )
        assert "hello" in said.stdout.lower()
        assert "world" in said.stdout.lower()
    assert "135M" in ended.err


@pytest.mark.embedded
@pytest.mark.usefixtures("smollm2")
@pytest.mark.slow
def test_the_embedded_model_leaves_files_of_others_alone(project: Path) -> None:
    """V2: it replaced a file by ``print("total")`` and said done, and invented answers."""
    cart = "def total(prices):\n    return sum(prices)\n"
    (project / "cart.py").write_text(cart)
    # Git does not show this one: the model is not told that it exists.
    (project / ".gitignore").write_text("hidden.py\n")
    (project / "hidden.py").write_text(cart)
    tasks = {
        "Add a docstring to total in cart.py": "was not written by the small model",
        "Create hidden.py that prints Hello": "",
        "What does this project do?": "cannot answer questions about a project",
    }
    for task, words in tasks.items():
        ended = evercontext("run", "-t", task, "-m", "embedded:smollm2", cwd=project)
        assert ended.code != 0, task
        assert words in ended.err, task
    assert (project / "cart.py").read_text() == cart
    assert (project / "hidden.py").read_text() == cart
