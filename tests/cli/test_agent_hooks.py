from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.task_hooks import MOST_STOPS
from evercontext.app import EverContext
from evercontext.domain.event import Diff, Event, HookRan, Notice
from evercontext.domain.tool import Mode
from evercontext.events.log_reader import read, segments
from evercontext.process.sandbox import Layer, choose
from evercontext.settings import load
from evercontext.tools.approval_gate import Gate, ask_for_writes
from evercontext.workspace.hook_commands import MOST_OUTPUT
from tests.cli.command import evercontext, home
from tests.journeys.story import call, script, write

ASKS_NOBODY = Gate()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def configure(hooks: dict[str, Any]) -> None:
    home().mkdir(parents=True, exist_ok=True)
    (home() / "config.json").write_text(json.dumps({"hooks": hooks}))


def claude(command: str, matcher: str = "", timeout: float = 60) -> list[dict[str, Any]]:
    """A hook as other agents write it."""
    one = {"type": "command", "command": command, "timeout": timeout}
    return [{"matcher": matcher, "hooks": [one]}]


@dataclass(frozen=True, slots=True)
class Told:
    """How a task ended."""

    code: int
    out: str
    err: str = ""
    changed: tuple[str, ...] = ()


async def run(
    root: Path,
    tmp_path: Path,
    *turns: dict[str, Any],
    mode: Mode = Mode.AGENT,
    gate: Gate = ASKS_NOBODY,
) -> Told:
    model = script(tmp_path / "s.jsonl", *turns)
    async with EverContext.open(load({"root": str(root), "auto_test": False})) as app:
        report = await app.run_task("do it", model_name=model, mode=mode, gate=gate)
    said = " ".join([*app.notices, report.final.error or ""])
    return Told(int(report.outcome), report.text, said, report.final.changed)


def every_event() -> list[Event]:
    return [event for place in segments(home() / "traces") for event in read(place)]


def ran() -> list[HookRan]:
    return [event.body for event in every_event() if isinstance(event.body, HookRan)]


async def test_exit_2_blocks_the_call_and_tells_the_model_why(
    project: Path, tmp_path: Path
) -> None:
    configure({"PreToolUse": claude("echo 'not secrets.txt, 秘密です' >&2; exit 2", "Write")})
    turns = [write("secrets.txt", "x"), {"when": "秘密です", "text": "I will not"}]
    ended = await run(project, tmp_path, *turns)
    assert (ended.code, ended.out.strip()) == (5, "I will not")
    assert "a hook blocked write_file: not secrets.txt, 秘密です" in ended.err
    assert not (project / "secrets.txt").exists()
    (told,) = ran()
    assert (told.event, told.decision, told.exit_code) == ("PreToolUse", "block", 2)


async def test_a_hook_is_told_what_others_tell_it(project: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    configure(
        {
            "PreToolUse": claude(f"cat > {seen}", "Edit|Write"),
            "PostToolUse": claude(f"cat > {seen}.after", "write_*"),
        }
    )
    assert (await run(project, tmp_path, write("a.txt", "日本\n"), {"text": "ok"})).code == 0
    before, after = json.loads(seen.read_text()), json.loads(Path(f"{seen}.after").read_text())
    assert before["hook_event_name"] == "PreToolUse"
    assert before["tool_name"] == "write_file"
    assert before["tool_input"]["content"] == "日本\n"
    assert before["cwd"] == str(project)
    assert before["session_id"] == before["trace_id"]
    assert after["tool_response"]["ok"] is True


async def test_a_matcher_keeps_the_other_tools_out(project: Path, tmp_path: Path) -> None:
    configure({"PreToolUse": claude("exit 2", "Bash|read_file")})
    assert (await run(project, tmp_path, write("a.txt", "x"), {"text": "ok"})).code == 0
    assert ran() == []


async def test_json_on_stdout_decides_too(project: Path, tmp_path: Path) -> None:
    inner = {"permissionDecision": "deny", "permissionDecisionReason": "ask Ada first"}
    said = json.dumps({"hookSpecificOutput": inner})
    configure({"PreToolUse": claude(f"printf %s '{said}'", "Write")})
    turns = [write("a.txt", "x"), {"when": "ask Ada first", "text": "asked"}]
    assert (await run(project, tmp_path, *turns)).out.strip() == "asked"


async def test_arguments_changed_by_a_hook_are_checked_and_used(
    project: Path, tmp_path: Path
) -> None:
    changed = {"path": "b.txt", "content": "changed\n", "mode": "create"}
    said = json.dumps({"hookSpecificOutput": {"updatedInput": changed}})
    configure({"PreToolUse": claude(f"printf %s '{said}'", "Write")})
    assert (await run(project, tmp_path, write("a.txt", "x"), {"text": "ok"})).code == 0
    assert [path.name for path in project.glob("*.txt")] == ["b.txt"]
    outside = json.dumps({"hookSpecificOutput": {"updatedInput": changed | {"path": "../b"}}})
    configure({"PreToolUse": claude(f"printf %s '{outside}'", "Write")})
    assert (await run(project, tmp_path, write("a.txt", "x"), {"text": "ok"})).code == 2
    assert not (tmp_path / "b").exists()


async def test_ask_makes_an_unattended_run_stop(project: Path, tmp_path: Path) -> None:
    said = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask"}})
    configure({"PreToolUse": claude(f"printf %s '{said}'", "Write")})
    assert (await run(project, tmp_path, write("a.txt", "x"), {"text": "ok"})).code == 5
    assert not (project / "a.txt").exists()


async def test_allow_loosens_nothing(project: Path, tmp_path: Path) -> None:
    said = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    configure({"PreToolUse": claude(f"printf %s '{said}'", "Write")})
    ended = await run(
        project, tmp_path, write("a.txt", "x"), {"text": "ok"}, gate=Gate(ask_for_writes)
    )
    assert ended.code == 5


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("exit 1", "ended with 1"),
        ("sleep 30", "did not finish"),
        ("no-such-program-at-all", "not found"),
        ("echo '{'", "like JSON"),
        ("yes flood", "printed too much"),
    ],
)
async def test_a_broken_hook_is_told_and_passed_over(
    project: Path, tmp_path: Path, broken: str, why: str
) -> None:
    configure({"PreToolUse": claude(broken, "Write", timeout=1 if "sleep" in broken else 60)})
    assert (await run(project, tmp_path, write("a.txt", "x"), {"text": "ok"})).code == 0
    assert (project / "a.txt").exists()
    (told,) = ran()
    assert told.decision == "error"
    (notice,) = [event.body for event in every_event() if isinstance(event.body, Notice)]
    assert (notice.level, why in notice.text) == ("warning", True), notice.text
    assert f"the PreToolUse hook {broken} failed and was passed over" in notice.text


async def test_a_flood_is_cut(project: Path, tmp_path: Path) -> None:
    configure({"UserPromptSubmit": claude("yes flood")})
    assert (await run(project, tmp_path, {"text": "ok"})).code == 0
    assert all(len(told.text) <= MOST_OUTPUT for told in ran())


async def test_words_of_a_prompt_hook_reach_the_model_and_a_no_ends_the_task(
    project: Path, tmp_path: Path
) -> None:
    configure(
        {
            "SessionStart": claude("echo the branch is main"),
            "UserPromptSubmit": claude("echo sprint 7"),
        }
    )
    turn = {"when": r"the branch is main\s+sprint 7", "text": "heard"}
    assert (await run(project, tmp_path, turn)).out.strip() == "heard"
    configure({"UserPromptSubmit": claude("echo not on Fridays >&2; exit 2")})
    ended = await run(project, tmp_path, {"text": "never"})
    assert (ended.code, "not on Fridays" in ended.err) == (5, True)
    assert ended.out == ""


async def test_a_stop_hook_sends_the_model_back_but_not_for_ever(
    project: Path, tmp_path: Path
) -> None:
    configure({"Stop": claude("[ -e a.txt ] || { echo write a.txt first >&2; exit 2; }")})
    turns = [{"text": "done"}, {"when": "write a.txt first", **write("a.txt", "x")}]
    assert (await run(project, tmp_path, *turns, {"text": "now done"})).out.strip() == "now done"
    configure({"Stop": claude("echo never >&2; exit 2")})
    ended = await run(project, tmp_path, *[{"text": f"done {n}"} for n in range(9)])
    assert ended.out.strip() == f"done {MOST_STOPS}"


async def test_what_hooks_write_counts_and_is_taken_back(project: Path, tmp_path: Path) -> None:
    (project / "old.txt").write_text("旧\n")
    configure(
        {
            "UserPromptSubmit": claude("printf 新 > old.txt"),
            "PreToolUse": claude("touch empty.txt; exit 2", "Write"),
            "PostToolUse": claude("printf 'x = 1\n' > a.py", "write_*|list_files"),
            "Stop": claude("rm -f gone.txt; printf '旧\n' > same.txt"),
        }
    )
    (project / "gone.txt").write_text("gone\n")
    (project / "same.txt").write_text("旧\n")
    turns = [write("a.py", "x=1\n"), {"tool_calls": [call("list_files", path=".")]}]
    ended = await run(project, tmp_path, *turns, {"text": "ok"})
    assert sorted(ended.changed) == ["a.py", "empty.txt", "gone.txt", "old.txt"]
    parents = {event.id for event in every_event() if isinstance(event.body, HookRan)}
    diffs = [event for event in every_event() if isinstance(event.body, Diff)]
    assert {event.parent for event in diffs} <= parents
    assert evercontext("undo", cwd=project).code == 0
    left = {path.name: path.read_text() for path in project.iterdir() if path.is_file()}
    assert left == {"old.txt": "旧\n", "gone.txt": "gone\n", "same.txt": "旧\n"}


@pytest.mark.case(100)
async def test_a_hook_sees_no_secret_of_the_environment(project: Path, tmp_path: Path) -> None:
    seen = tmp_path / "env"
    configure({"UserPromptSubmit": claude(f"env > {seen}")})
    model = script(tmp_path / "s.jsonl", {"text": "ok"})
    given = {"MY_API_KEY": "canary-key", "OTHER": "canary-other"}
    assert evercontext("run", "-t", "x", "-m", model, cwd=project, env=given).code == 0
    assert "canary" not in seen.read_text()
    assert f"CLAUDE_PROJECT_DIR={project}" in seen.read_text()


CONFIG = """
[[hooks.PreToolUse]]
matcher = "write_file"
command = "touch made/from-the-hook; touch ../outside; true"
"""


@pytest.mark.case(66, 67)
@pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no cage here")
@pytest.mark.slow
async def test_hooks_of_a_project_run_only_trusted_and_only_in_the_cage(
    project: Path, tmp_path: Path
) -> None:
    # In a folder of its own: without mounts, nothing can be created beside a protected name.
    (project / "made").mkdir()
    (project / "evercontext.toml").write_text(CONFIG)
    turns = [write("a.txt", "x"), {"text": "ok"}]
    ended = await run(project, tmp_path, *turns)
    assert "sets hooks: ignored until you trust" in ended.err
    assert ran() == []
    assert not (project / "made/from-the-hook").exists()
    assert "untrusted, project" in evercontext("hooks", "list", cwd=project).out
    assert evercontext("hooks", "trust", cwd=project).code == 5
    assert evercontext("hooks", "trust", "--yes", cwd=project).code == 0
    done = await run(project, tmp_path, *turns)
    assert (done.code, done.changed) == (0, ("made/from-the-hook",))
    assert (project / "made/from-the-hook").exists()
    assert not (tmp_path / "outside").exists()
    assert evercontext("undo", cwd=project).code == 0
    assert not (project / "made/from-the-hook").exists(), "what a hook writes is journalled"
    with (project / "evercontext.toml").open("a") as file:
        file.write("# one more byte\n")
    before = len(ran())
    await run(project, tmp_path, *turns)
    assert len(ran()) == before
    evercontext("hooks", "trust", "--yes", cwd=project)
    assert evercontext("hooks", "untrust", cwd=project).code == 0
    await run(project, tmp_path, *turns)
    assert len(ran()) == before


@pytest.mark.case(66)
async def test_a_project_cannot_take_the_users_own_hooks_away(
    project: Path, tmp_path: Path
) -> None:
    configure({"PreToolUse": claude("echo mine >&2; exit 2", "Write")})
    (project / "evercontext.toml").write_text("[hooks]\nPreToolUse = []\n")
    evercontext("config", "trust", "--yes", cwd=project)
    await run(project, tmp_path, write("a.txt", "x"), {"when": "mine", "text": "ok"})
    assert not (project / "a.txt").exists()


@pytest.mark.contract("N7")
@pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no cage here")
async def test_in_plan_mode_and_dry_runs_no_hook_can_write(project: Path, tmp_path: Path) -> None:
    configure({"PreToolUse": claude("touch written"), "UserPromptSubmit": claude("touch written")})
    turns: list[dict[str, Any]] = [{"tool_calls": [call("list_files", path=".")]}, {"text": "ok"}]
    assert (await run(project, tmp_path, *turns, mode=Mode.DRY_RUN)).code == 0
    assert len(ran()) == 2
    assert list(project.iterdir()) == []


async def test_the_list_says_what_runs_and_what_never_happens(project: Path) -> None:
    configure({"Stop": claude("echo \x1b[31m終わり"), "Notification": claude("true")})
    ended = evercontext("hooks", "list", cwd=project)
    assert ended.out.splitlines() == [
        "Stop  runs, user, at most 60 s",
        "  echo \\x1b[31m終わり",
        "Notification  no such event here, user, at most 60 s",
        "  true",
    ]
    told = json.loads(evercontext("hooks", "list", "--json", cwd=project).out)
    assert [one["state"] for one in told] == ["runs", "no such event here"]
    assert "no event Notification happens here" in evercontext("config", "show", cwd=project).err
