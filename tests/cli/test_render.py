from __future__ import annotations

import io
import itertools

import pyte
import pytest

from evercontext.cli.event_text import verdict
from evercontext.cli.render import TextView, painted_diff
from evercontext.cli.terminal import Screen, columns_of
from evercontext.domain.event import (
    Body,
    Diff,
    Event,
    Final,
    ModelReply,
    Notice,
    Plan,
    Step,
    StepResult,
    Task,
    TaskEnded,
    TextPiece,
    Verification,
)

TRACE = "0b8ed1b2-1f6e-4a51-9d02-7f1f5f8f7c11"
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Shown:
    """A view and what it wrote."""

    def __init__(self, stream: type[io.StringIO] = io.StringIO) -> None:
        self.out, self.err = stream(), stream()
        screens = (Screen(self.out, no_color=True), Screen(self.err, no_color=True))
        self.view = TextView(*screens, TRACE)
        self._numbers = itertools.count(1)

    def tell(self, body: Body, parent: str | None = None, trace: str = TRACE) -> str:
        number = str(next(self._numbers))
        self.view(Event(number, "2026-11-15T00:00:00.000000+00:00", trace, body, parent))
        return number

    def call(self, ok: bool = True, error: str | None = None, text: str = "fine") -> str:
        step = Step(
            tool="write_file",
            arguments={"path": "a.py", "content": "long"},
            effects=("write",),
            door="run",
            mode="agent",
        )
        step_id = self.tell(step)
        self.tell(StepResult(tool="write_file", ok=ok, text=text, error=error), step_id)
        return step_id


def task(mode: str = "agent") -> Task:
    return Task(text="do", root="/p", model="scripted:x", mode=mode, door="run")


def final(text: str = "All done.", status: str = "done", error: str | None = None) -> Final:
    return Final(status=status, text=text, exit_code=0, turns=2, error=error, changed=("a.py",))


@pytest.mark.contract("E7")
def test_progress_on_stderr_and_the_answer_on_stdout() -> None:
    shown = Shown()
    shown.tell(task())
    shown.tell(ModelReply(model="x", turn=1, text="Let me look.", calls=({"name": "write_file"},)))
    step = shown.call()
    diff = Diff(path="a.py", kind="changed", added=1, removed=1, diff=DIFF)
    shown.tell(diff, step)
    shown.tell(ModelReply(model="x", turn=2, text="All done."))
    shown.tell(final())
    assert shown.out.getvalue() == "All done.\n"
    assert "Let me look.\n  write_file a.py  ok  0 ms\n" in shown.err.getvalue()
    assert "    a.py changed +1 -1\n      1 - old\n      1 + new\n" in shown.err.getvalue()
    assert "done  1 file changed, 2 turns, 0 ms\n" in shown.err.getvalue()
    assert f"trace {TRACE}\n" in shown.err.getvalue()


def test_a_terminal_sees_text_as_it_comes_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = Shown(Terminal)
    shown.tell(task())
    for piece in ("All ", "done."):
        shown.tell(TextPiece(text=piece))
    assert shown.out.getvalue() == "All done."
    shown.tell(TextPiece(text="hidden", thought=True))
    shown.tell(ModelReply(model="x", turn=1, text="All done."))
    shown.tell(final())
    assert shown.out.getvalue() == "All done.\n"


def test_a_running_call_is_seen_and_ended_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = Shown(Terminal)
    step = Step(tool="run.test", arguments={}, effects=(), door="run", mode="agent")
    step_id = shown.tell(step)
    assert shown.err.getvalue() == "  run.test"
    shown.tell(Notice(level="warning", text="slow"))
    shown.tell(StepResult(tool="run.test", ok=True, text="", duration_ms=1500), step_id)
    assert shown.err.getvalue() == "  run.test\nwarning: slow\n  run.test  ok  1.5 s\n"


def test_waiting_is_shown_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, err = Terminal(), Terminal()
    view = TextView(Screen(out), Screen(err), TRACE)
    event = Event("1", "2026-11-15T00:00:00.000000+00:00", TRACE, task())
    view(event)
    assert "thinking" in err.getvalue()
    view(Event("2", event.at, TRACE, TextPiece(text="Hi")))
    view(Event("3", event.at, TRACE, final("Hi")))
    screen = pyte.Screen(100, 24)
    pyte.Stream(screen).feed(err.getvalue().replace("\n", "\r\n"))
    assert not any("thinking" in line or "writing" in line for line in screen.display)
    assert out.getvalue() == "Hi\n"


def test_a_dry_run_prints_a_patch() -> None:
    shown = Shown()
    shown.tell(task("dry-run"))
    shown.tell(Diff(path="a.py", kind="changed", added=1, removed=1, diff=DIFF, applied=False))
    shown.tell(final(text=""))
    assert shown.out.getvalue() == DIFF
    assert "1 file would change" in shown.err.getvalue()
    assert "undo" not in shown.err.getvalue()


def test_a_dry_run_says_what_was_not_done() -> None:
    shown = Shown()
    shown.tell(task("dry-run"))
    shown.call()
    shown.tell(Diff(path="a.py", kind="changed", added=1, removed=1, diff=DIFF, applied=False))
    shown.tell(final())
    assert "  write_file a.py  not done\n" in shown.err.getvalue()
    assert shown.out.getvalue() == DIFF
    assert "All done.\n" in shown.err.getvalue()


def test_a_write_of_the_same_content_is_no_change() -> None:
    shown = Shown()
    shown.tell(Diff(path="a.py", kind="changed", added=0, removed=0, diff=""))
    assert shown.err.getvalue() == "    a.py unchanged\n"


def test_an_empty_new_file_is_a_change() -> None:
    shown = Shown()
    shown.tell(Diff(path="a.py", kind="created", added=0, removed=0, diff=""))
    assert shown.err.getvalue().startswith("    a.py created +0 -0\n")


def test_line_ends_show_where_they_differ_and_a_patch_keeps_them() -> None:
    head = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n"
    everywhere, mixed = f"{head}-old\r\n+new\r\n", f"{head}-old\r\n+old\n"
    terminal, file = Screen(Terminal(), no_color=True), Screen(io.StringIO())
    assert painted_diff(terminal, everywhere)[3:] == ["-old", "+new"]
    assert painted_diff(terminal, mixed)[3:] == ["-old\\x0d", "+old"]
    assert painted_diff(file, mixed)[3:] == ["-old\r", "+old"]


def test_another_trace_is_none_of_its_business() -> None:
    shown = Shown()
    shown.tell(final(), trace="another")
    assert shown.out.getvalue() + shown.err.getvalue() == ""


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("path_escapes_root", "refused"),
        ("mode_refused", "refused"),
        ("approval_denied", "denied"),
        ("not_found", "failed"),
        ("of a newer version", "failed"),
    ],
)
def test_how_a_call_ended(code: str, word: str) -> None:
    assert verdict(StepResult(tool="t", ok=False, text="", error=code))[0] == word
    shown = Shown()
    shown.call(ok=False, error=code, text="why\nso")
    assert shown.err.getvalue() == f"  write_file a.py  {word}\n    why so\n"


def test_a_long_diff_is_cut_with_a_way_to_the_rest() -> None:
    shown = Shown()
    lines = "".join(f"+{n}\n" for n in range(300))
    diff = f"--- /dev/null\n+++ b/a\n@@ -0,0 +1,300 @@\n{lines}"
    shown.tell(Diff(path="a", kind="created", added=300, removed=0, diff=diff))
    assert f"… a: 100 more lines: evercontext trace show {TRACE[:8]}" in shown.err.getvalue()


def test_an_error_and_a_check_have_their_line() -> None:
    shown = Shown()
    command = ("/home/x/venv/bin/pytest", "-q")
    check = Verification(kind="test", command=command, exit_code=1, summary="1 failed")
    shown.tell(check)
    shown.tell(final(text="", status="red", error="the checks\nare red"))
    assert "  check test: pytest -q → exit 1. 1 failed\n" in shown.err.getvalue()
    assert "error: the checks are red\n" in shown.err.getvalue()


def test_a_long_japanese_path_fits_the_screen() -> None:
    shown = Shown(Terminal)
    step = Step(
        tool="read_file",
        arguments={"path": "とても長い名前の" * 30},
        effects=("read",),
        door="run",
        mode="agent",
    )
    shown.tell(StepResult(tool="read_file", ok=True, text=""), shown.tell(step))
    assert all(columns_of(line) <= 120 for line in shown.err.getvalue().splitlines())


def test_a_plan_of_several_parts_is_shown_with_how_they_ended() -> None:
    shown = Shown()
    first = {"id": "a", "title": "look", "depends_on": []}
    second = {"id": "b", "title": "write\x1b", "depends_on": ["a"]}
    shown.tell(Plan(tasks=(first,), source="implicit"))
    assert shown.err.getvalue() == ""
    shown.tell(Plan(tasks=(first, second), source="gemini-cli"))
    shown.tell(TaskEnded(id="a", title="look", status="done"))
    told = "plan (gemini-cli)\n  a: look\n  b: write\\x1b (after a)\ndone look\n"
    assert shown.err.getvalue() == told


def command_result(code: int, text: str) -> StepResult:
    return StepResult(tool="run_command", ok=True, text=text, exit_code=code)


def test_what_a_command_did_is_shown() -> None:
    shown = Shown()
    step = Step(
        tool="run_command",
        arguments={"command": "./x"},
        effects=("execute",),
        door="run",
        mode="agent",
    )
    said = "\n".join(f"line {number}" for number in range(30))
    text = f"$ sh -c ./x\n{said}\nend \x1b[2J\n[exit code 3]"
    shown.tell(command_result(3, text), shown.tell(step))
    first, *output = shown.err.getvalue().splitlines()
    assert first == "  run_command ./x  exit 3  0 ms"
    assert output[0] == "    … 23 lines before"
    assert output[-2:] == ["    line 29", "    end \\x1b[2J"]
    assert len(output) == 9
