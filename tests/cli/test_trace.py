from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import threading
from datetime import datetime
from pathlib import Path

import pytest

from evercontext.cli.trace_lookup import newest
from evercontext.domain.event import (
    ContextAssembled,
    Diff,
    Final,
    ModelReply,
    Notice,
    Plan,
    Step,
    StepResult,
    Task,
)
from evercontext.events.log import EventLog
from evercontext.files.file_tree import WriteMode
from evercontext.files.policy import FilePolicy
from evercontext.workspace.workspace import LocalWorkspace
from tests.cli.command import EVERCONTEXT, evercontext, home

FIRST = "11111111-aaaa-4aaa-8aaa-000000000001"
SECOND = "11111111-bbbb-4bbb-8bbb-000000000002"


def record(log: EventLog, trace_id: str, text: str, *, end: bool = True) -> None:
    task = Task(text=text, root="/p", model="scripted:x", mode="agent", door="run")
    top = log.emit(task, trace_id=trace_id).id
    log.emit(Plan(tasks=({"id": "task"},), source="implicit"), trace_id=trace_id, parent=top)
    reply = ModelReply(model="x", turn=1, text="I will write it.", input_tokens=10)
    log.emit(reply, trace_id=trace_id, parent=top)
    step = Step(
        tool="write_file",
        arguments={"path": "app/main.py", "content": "x"},
        effects=("write",),
        door="run",
        mode="agent",
    )
    step_id = log.emit(step, trace_id=trace_id, parent=top).id
    result = StepResult(tool="write_file", ok=True, text="ok", duration_ms=3)
    log.emit(result, trace_id=trace_id, parent=step_id)
    diff = "--- /dev/null\n+++ b/app/main.py\n@@ -0,0 +1 @@\n+print('\x1b[2J')\n"
    change = Diff(path="app/main.py", kind="created", added=1, removed=0, diff=diff)
    log.emit(change, trace_id=trace_id, parent=step_id)
    if end:
        final = Final(
            status="done", text="Made it.", exit_code=0, turns=1, changed=("app/main.py",)
        )
        log.emit(final, trace_id=trace_id, parent=top)


@pytest.fixture
def log() -> EventLog:
    log = EventLog(home() / "traces")
    record(log, FIRST, "app に Hello World を作成")
    record(log, SECOND, "second task", end=False)
    log.close()
    return log


@pytest.mark.contract("E26", "E27")
def test_show_is_a_tree_from_task_to_final(log: EventLog) -> None:
    ended = evercontext("trace", "show", FIRST[:12])
    assert ended.code == 0
    words = [line.lstrip("│├└─ ").split(" ")[0] for line in ended.out.splitlines()]
    order = ["task", "plan", "reply", "step", "result", "diff", "final"]
    assert [word for word in words if word in order] == order
    assert "│  ├─ result ok" in ended.out
    assert "app に Hello World を作成" in ended.out
    assert "+print('\\x1b[2J')" in ended.out
    assert "Made it." in ended.out


@pytest.mark.contract("E28")
def test_show_as_json_lines_is_the_log_itself(log: EventLog) -> None:
    events = [
        json.loads(line) for line in evercontext("trace", "show", FIRST, "--json").out.splitlines()
    ]
    assert [event["type"] for event in events][:2] == ["task", "plan"]
    assert {event["trace_id"] for event in events} == {FIRST}


def test_without_an_id_the_newest_is_shown(log: EventLog) -> None:
    assert evercontext("trace", "show", "--all").out.startswith("task second task")


def test_a_beginning_must_fit_one_trace(log: EventLog) -> None:
    ambiguous = evercontext("trace", "show", "1111")
    assert ambiguous.code == 64
    assert FIRST in ambiguous.err
    missing = evercontext("trace", "show", "ffff")
    assert missing.code == 1
    assert "trace list" in missing.err


def test_list_has_the_newest_first(log: EventLog) -> None:
    shown = json.loads(evercontext("trace", "list", "--all", "--json").out)
    assert [(row["trace_id"], row["status"]) for row in shown] == [
        (SECOND, "running"),
        (FIRST, "done"),
    ]
    lines = evercontext("trace", "list", "--all").out.splitlines()
    assert lines[1].startswith(FIRST[:8])
    assert "app に Hello World を作成" in lines[1]
    assert len(evercontext("trace", "list", "--all", "-n", "1").out.splitlines()) == 1


def test_a_task_whose_process_is_gone_is_cut_off(log: EventLog) -> None:
    segment = next((home() / "traces").glob("*.jsonl"))
    day, rest = segment.name[:11], segment.name[11:].partition("-")[2]
    segment.rename(segment.with_name(f"{day}4194305-{rest}"))
    assert json.loads(evercontext("trace", "list", "--all", "--json").out)[0]["status"] == "cut off"


def test_a_task_that_told_no_ending_lists_what_the_journal_knows(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    workspace = LocalWorkspace.open(root, home(), gateway=FilePolicy(), agent=FilePolicy())
    write = workspace.tree.write
    write("a.txt", "a\n", WriteMode.CREATE, trace_id=FIRST)
    write("a.txt", "a\n", WriteMode.OVERWRITE, trace_id=FIRST)
    write("日本.txt", "b\n", WriteMode.CREATE, trace_id=FIRST)
    write("other.txt", "c\n", WriteMode.CREATE, trace_id=SECOND)
    workspace.close()
    log = EventLog(home() / "traces")
    task = Task(text="killed", root=str(root), model="scripted:x", mode="agent", door="run")
    log.emit(task, trace_id=FIRST)
    log.close()
    assert "2 files  killed" in evercontext("trace", "list", "--all").out
    assert json.loads(evercontext("trace", "list", "--all", "--json").out)[0]["changed"] == 2


def test_long_words_keep_their_distance_in_the_list() -> None:
    log = EventLog(home() / "traces")
    task = Task(text="far away", root="/x", model="scripted:x", mode="agent", door="run")
    log.emit(task, trace_id=FIRST)
    changed = tuple(f"{n}.txt" for n in range(1234))
    log.emit(Final(status="unreachable", text="", exit_code=75, changed=changed), trace_id=FIRST)
    log.close()
    assert "unreachable 1,234 files far away" in evercontext("trace", "list", "--all").out


def test_nothing_to_list_is_said_on_stderr() -> None:
    ended = evercontext("trace", "list", "--all")
    assert (ended.code, ended.out) == (0, "")
    assert "no traces yet" in ended.err
    assert json.loads(evercontext("trace", "list", "--all", "--json").out) == []
    assert evercontext("trace", "show", "--all").code == 1


def test_a_dry_run_is_not_said_to_have_changed_files(log: EventLog) -> None:
    task = Task(text="only look", root="/p", model="scripted:x", mode="dry-run", door="run")
    log.emit(task, trace_id="22222222-aaaa-4aaa-8aaa-000000000003")
    final = Final(status="done", text="", exit_code=0, turns=1, changed=("a.py",))
    log.emit(final, trace_id="22222222-aaaa-4aaa-8aaa-000000000003")
    log.close()
    first = evercontext("trace", "list", "--all", "-n", "1").out
    assert "dry run" in first
    assert "1 file" not in first


def test_what_is_no_segment_is_passed_over(log: EventLog) -> None:
    (home() / "traces/2026-01-01-folder.jsonl").mkdir()
    (home() / "traces/2026-01-02-gone.jsonl").symlink_to("nowhere")
    os.mkfifo(home() / "traces/2026-01-03-pipe.jsonl")
    assert len(json.loads(evercontext("trace", "list", "--all", "--json").out)) == 2
    assert evercontext("trace", "show", FIRST).code == 0


def test_a_line_cut_off_by_a_crash_is_passed_over(log: EventLog) -> None:
    segment = next((home() / "traces").glob("*.jsonl"))
    whole = segment.read_bytes()
    segment.write_bytes(whole + b'{"id":"1","at":"2026')
    assert len(json.loads(evercontext("trace", "list", "--all", "--json").out)) == 2


@pytest.mark.case(95)
def test_control_characters_of_the_log_are_written_out() -> None:
    log = EventLog(home() / "traces")
    record(log, FIRST, "title \x1b]0;owned\x07")
    log.emit(Notice(level="warning", text="\x1b[31mred"), trace_id=FIRST)
    log.close()
    for arguments in (("list", "--all"), ("show", FIRST)):
        assert "\x1b" not in evercontext("trace", *arguments).out


def test_show_says_how_a_command_ended_and_what_it_said() -> None:
    trace_id = "22222222-aaaa-4aaa-8aaa-000000000003"
    log = EventLog(home() / "traces")
    text = "$ sh -c 'echo out; exit 3'\nout \x1b[2J\n[exit code 3]"
    result = StepResult(tool="run_command", ok=True, text=text, exit_code=3)
    log.emit(result, trace_id=trace_id)
    log.close()
    shown = evercontext("trace", "show", trace_id).out
    assert "result exit 3" in shown
    assert "out \\x1b[2J" in shown


def test_show_says_in_words_what_a_context_was_made_of() -> None:
    log = EventLog(home() / "traces")
    made = ContextAssembled(
        context_assembly_latency_ms=482.545224,
        context_token_count=1234,
        memory_layer_usage={"working": 1000, "semantic": 234, "summary": 0},
        token_limit=80_000,
        compression_applied=True,
        degraded={"summary": "too slow"},
    )
    log.emit(made, trace_id=FIRST)
    unbounded = dataclasses.replace(made, token_limit=0, memory_layer_usage={}, degraded={})
    log.emit(unbounded, trace_id=FIRST)
    log.close()
    assert evercontext("trace", "show", FIRST).out == (
        "context 1,234 of 80,000 tokens, working 1,000, semantic 234, compressed,"
        " without summary (too slow), 483 ms\n"
        "context 1,234 tokens, compressed, 483 ms\n"
    )


def test_a_file_whose_time_lies_behind_its_events_is_not_left_out(tmp_path: Path) -> None:
    # The clock of a file system ticks more slowly than the one that events are written by.
    for text in ("earlier", "later"):
        log = EventLog(tmp_path / text)
        record(log, text, text)
        assert log.segment
        log.segment.rename(tmp_path / f"{log.segment.name}-{text}.jsonl")
        log.close()
    files = {text: next(tmp_path.glob(f"*-{text}.jsonl")) for text in ("earlier", "later")}
    begun = datetime.fromisoformat(newest(tmp_path, 2)[1].started).timestamp()
    os.utime(files["later"], (begun - 1, begun - 1))
    os.utime(files["earlier"], (begun + 1, begun + 1))
    assert [one.text for one in newest(tmp_path, 1)] == ["later"]


def test_tail_leaves_out_what_another_project_began_before_it(
    log: EventLog, tmp_path: Path
) -> None:
    """F9: only the log knows where a task began that runs already."""
    for trace_id, root in ((FIRST, "/p"), (SECOND, str(tmp_path))):
        task = Task(text="work", root=root, model="scripted:x", mode="agent", door="run")
        log.emit(task, trace_id=trace_id)
    seen = threading.Event()

    def go_on() -> None:
        while not seen.wait(0.05):
            log.emit(Notice(level="info", text="of theirs"), trace_id=FIRST)
            log.emit(Notice(level="info", text="of ours"), trace_id=SECOND)

    writer = threading.Thread(target=go_on)
    command = [EVERCONTEXT, "trace", "tail"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        writer.start()
        try:
            assert process.stdout
            # Between two of ours was one of theirs.
            lines = [process.stdout.readline() for _ in range(3)]
        finally:
            seen.set()
            writer.join()
            process.terminate()
    assert all("of ours" in line for line in lines), lines
