"""Events → terminal. Append-only: a line once ended is never touched again.

Progress goes to stderr; the answer, and in a dry run the diffs, go to stdout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evercontext.cli.diff_lines import numbered_diff
from evercontext.cli.live_region import LiveRegion, live_height
from evercontext.cli.markdown import MarkdownStream, rendered
from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen, clip, columns_of, counted, one_line, visible
from evercontext.cli.turn_clock import TurnClock
from evercontext.domain.event import (
    Diff,
    Event,
    Final,
    ModelReply,
    Notice,
    Plan,
    RepairAttempt,
    Retry,
    RolledBack,
    Step,
    StepResult,
    Task,
    TaskBegan,
    TaskEnded,
    TextPiece,
    Verification,
)
from evercontext.domain.tool import Mode
from evercontext.errors import ApprovalDenied, ModeRefused, PolicyError, by_code

MOST_DIFF_LINES = 200
MOST_OUTPUT_LINES = 8
_MODES = re.compile(r"\Aold mode 100(\d+)\nnew mode 100(\d+)\n")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHORT_ID = 8
_COLOURS = {
    "done": "green",
    "red": "yellow",
    "limit": "yellow",
    "cancelled": "yellow",
    "skipped": "yellow",
}


class TextView:
    """Shows one task to a person as it happens."""

    def __init__(
        self,
        out: Screen,
        err: Screen,
        trace_id: str,
        gateway: str | None = None,
        *,
        brief: bool = False,
    ) -> None:
        self._out, self._err, self._trace_id = out, err, trace_id
        self._gateway, self._brief = gateway, brief
        self._dry = False
        self._patched = False
        self._streamed = ""
        self._stream = MarkdownStream()
        self._blocks = 0
        self._region = LiveRegion(err)
        self._clock = TurnClock()
        self._label: str | None = None
        self._open: str | None = None
        self._steps: dict[str, tuple[Step, str]] = {}
        self._parts: dict[str, str] = {}
        self._beside = 0

    def __call__(self, event: Event) -> None:
        """Take one event of the log."""
        if event.trace_id != self._trace_id:
            return
        if isinstance(event.body, TextPiece):
            self._piece(event.body)
            return
        self._region.erase()
        self._label = None
        self._show(event)
        if not (self._open or isinstance(event.body, Final)):
            self._label = translate("the model is thinking")
            self.tick()

    def tick(self) -> None:
        """Draw again what is being waited for: the seconds go on while nothing else happens."""
        if self._label is not None:
            self._region.draw(self._live_lines())

    def _show(self, event: Event) -> None:
        match event.body:
            case Task() as task:
                self._clock.start()
                self._task(task)
            case ModelReply() as reply:
                self._reply(reply)
            case Step() as step:
                self._step(event, step)
            case StepResult() as result:
                self._result(event.parent or "", result)
            case Diff() as diff:
                self._diff(diff)
            case Final() as final:
                self._final(final)
            case TaskBegan() as part:
                self._began(event.id, part)
            case RolledBack() as rollback:
                self._rolled_back(rollback)
            case RepairAttempt() as attempt:
                self.pause()
                self._err.line(f"  repair {describe_repair(attempt)}", *repair_style(attempt))
            case Notice() | Retry() | Verification() | Plan() | TaskEnded() as remark:
                self._aside(remark)

    def pause(self) -> None:
        """End an unfinished line, so that somebody else can write."""
        self._region.erase()
        self._label = None
        if self._open:
            self._err.line()
            self._open = None
        if left := self._stream.end():
            self._block(left)
        if self._streamed and not self._out.colour and not self._streamed.endswith("\n"):
            self._out.line()
            self._streamed += "\n"

    def _live_lines(self) -> list[str]:
        rows = live_height() - 1
        lines: list[str] = []
        if text := self._stream.unfinished(rows):
            lines = rendered(text, self._out).split("\n")[-rows:]
        about = " · ".join([f"… {self._label}", *self._clock.parts()])
        return [*lines, self._err.paint(clip(f"  {about}", self._err.width - 1), "dim")]

    def _task(self, task: Task) -> None:
        self._dry = task.mode == Mode.DRY_RUN
        place = f"files behind {self._gateway}" if self._gateway else f"root {task.root}"
        if self._brief:
            return
        what = [f"model {task.model}", place]
        what += ["dry run: nothing is written"] if self._dry else []
        for text in what:
            self._err.line(one_line(text), "dim")

    def _piece(self, piece: TextPiece) -> None:
        self._clock.count(piece.text)
        # Through a pipe only the answer is wanted, and which text that is shows at the end.
        if not self._out.is_terminal:
            return
        if piece.thought:
            self._label = translate("thinking")
        else:
            self._write_piece(piece.text)
            self._label = translate("writing")
        if self._region.is_due:
            self._region.draw(self._live_lines())

    def _write_piece(self, text: str) -> None:
        if not self._streamed:
            self.pause()
            self._err.line()
            self._blocks = 0
        self._streamed += text
        if not self._out.colour:
            # Nothing is drawn twice without colours, so that a screen reader reads it once.
            self._out.write(visible(text))
            return
        if blocks := self._stream.feed(text):
            self._region.erase()
            for block in blocks:
                self._block(block)

    def _block(self, block: str) -> None:
        if self._blocks:
            self._out.line()
        self._out.line(rendered(block, self._out))
        self._blocks += 1

    def _reply(self, reply: ModelReply) -> None:
        streamed = self._streamed.strip()
        self.pause()
        if reply.calls:
            self._streamed = ""
            if reply.text.strip() and not streamed:
                self._err.line(rendered(reply.text.strip(), self._err))

    def _began(self, event_id: str, part: TaskBegan) -> None:
        self.pause()
        self._parts[event_id] = one_line(part.id)
        self._beside += 1
        self._err.line(f"{self._err.paint('now', 'cyan')} {one_line(part.title)}")

    def _rolled_back(self, rollback: RolledBack) -> None:
        self.pause()
        for path in (*rollback.restored, *rollback.removed):
            self._err.line(f"  rolled back {one_line(path)}", "yellow")
        for unrestored in rollback.kept:
            why = f"{unrestored.get('path')} ({unrestored.get('reason')})"
            self._err.line(f"  kept {one_line(why)}", "yellow")

    def _step(self, event: Event, step: Step) -> None:
        self.pause()
        part = self._part_of(event)
        self._steps[event.id] = step, part
        # A call that takes its time is seen while it runs, and ended on the same line.
        if self._err.is_terminal:
            self._err.write(self._painted_call(step, part))
            self._open = event.id

    def _part_of(self, event: Event) -> str:
        """Which task a call belongs to, where several run at once."""
        return self._parts.get(event.parent or "", "") if self._beside > 1 else ""

    def _painted_call(self, step: Step, part: str = "") -> str:
        name, about = shown_tool(step.tool), subject(step.arguments)
        mark = f"{self._err.paint(part, 'dim')} " if part else ""
        width = self._err.width - columns_of(name) - columns_of(part) - 24
        return f"  {mark}{self._err.paint(name, 'bold')} {clip(about, width)}".rstrip()

    def _result(self, step_id: str, result: StepResult) -> None:
        step, part = self._steps.pop(step_id, (None, ""))
        if step and self._open != step_id:
            self.pause()
            self._err.write(self._painted_call(step, part))
        self._open = None
        word, colour = verdict(result)
        if result.ok and self._dry and step and {"write", "execute"} & {*step.effects}:
            word, colour = "not done", "dim"
        took = f"  {seconds(result.duration_ms)}" if result.ok and word != "not done" else ""
        self._err.line(f"  {self._err.paint(word, colour)}{self._err.paint(took, 'dim')}")
        if not result.ok:
            self._err.line(f"    {one_line(result.text)}")
        for line in output_lines(result, self._err.width - 5):
            self._err.line(f"    {line}", "dim")

    def _diff(self, diff: Diff) -> None:
        self.pause()
        if self._dry and diff.diff:
            self._patched = True
            for text in painted_diff(self._out, diff.diff):
                self._out.line(text)
            return
        self._err.line(f"    {describe_diff(diff)}", "bold")
        lines = numbered_diff(self._err, without_modes(diff.diff), diff.path)
        for text in lines[:MOST_DIFF_LINES]:
            self._err.line(f"    {text}")
        more = len(lines) - MOST_DIFF_LINES
        if more > 0:
            hint = f"evercontext trace show {self._trace_id[:_SHORT_ID]}"
            rest = f"{one_line(diff.path)}: {counted(more, 'more line')}"
            self._err.line(f"    … {rest}: {hint}", "dim")

    def _aside(self, remark: Notice | Retry | Verification | Plan | TaskEnded) -> None:
        self.pause()
        match remark:
            case Notice(level=level, text=text):
                mark = "note" if level == "info" else level
                said_so = self._err.wrapped(f"{mark}: {one_line(text)}")
                self._err.line(said_so, "yellow" if mark != "note" else "dim")
            case Retry(reason=reason):
                self._err.line(self._err.wrapped(f"again: {one_line(reason)}"), "yellow")
            case Verification() as check:
                self._err.line(f"  check {describe_check(check)}")
            case Plan(tasks=tasks, source=source) if len(tasks) > 1:
                self._err.line(f"plan ({one_line(source)})", "bold")
                for task in tasks:
                    self._err.line(f"  {one_line(plan_part(task))}")
            case TaskEnded(title=title, status=status):
                self._beside -= status != "skipped"
                colour = _COLOURS.get(status, "red")
                self._err.line(f"{self._err.paint(status, colour)} {one_line(title)}")

    def _final(self, final: Final) -> None:
        answer = final.text.strip()
        shown = self._streamed.strip()
        self.pause()
        if answer and answer != shown:
            if self._out.is_terminal:
                self._err.line()
            # What a dry run prints can be applied as a patch, so words stay out of it.
            screen = self._err if self._patched else self._out
            screen.line(rendered(answer, screen))
        if self._brief and not final.error and not final.note:
            return
        self._err.line()
        if final.error:
            self._err.line(*error_line(final))
        if final.note:
            self._err.line(self._err.wrapped(f"note: {one_line(final.note)}"), "yellow")
        colour = _COLOURS.get(final.status, "red")
        word = self._err.paint(final.status, "bold", colour)
        self._err.line(f"{word}  {describe_final(final, dry=self._dry)}")
        if not self._brief:
            self._footer(final)

    def _footer(self, final: Final) -> None:
        short = self._trace_id[:_SHORT_ID]
        hints = [(f"evercontext trace show {short}", "what happened")]
        if final.changed and not self._dry:
            where = ", where the files are" if self._gateway else ""
            hints.append((f"evercontext undo {short}", f"take it back{where}"))
        if final.tasks_done < final.tasks and not self._dry and not final.rolled_back:
            hints.append((f"evercontext run --resume {short}", "go on where it stopped"))
        width = max(len(command) for command, _ in hints)
        self._err.line(f"trace {self._trace_id}", "dim")
        for command, meaning in hints:
            self._err.line(f"      {command.ljust(width)}   {meaning}", "dim")


def describe_call(step: Step) -> str:
    """A call in a few words: the tool and what it is about."""
    return f"{shown_tool(step.tool)} {subject(step.arguments)}".rstrip()


def shown_tool(name: str) -> str:
    """Return the one name that a tool is shown by, however a model spelt it."""
    if ":" in name:
        return one_line(name)
    return one_line(_CAMEL.sub("_", name.replace("__", ".")).lower())


def error_line(final: Final) -> tuple[str, str]:
    """Return why a task ended badly and its colour; what the user chose is no error."""
    text = one_line(final.error or "")
    if final.status in ("cancelled", "denied"):
        return text, "yellow"
    return f"error: {text}", "red"


def subject(arguments: Mapping[str, Any]) -> str:
    """The argument that says most: the path, else the first short one."""
    return one_line(_telling(arguments)[:300])


def _telling(arguments: Mapping[str, Any]) -> str:
    for name in ("path", "directory", "command", "query", "url"):
        if isinstance(arguments.get(name), str | list | tuple):
            return _words(arguments[name])
    return next((_words(v) for v in arguments.values() if isinstance(v, str | int)), "")


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def verdict(result: StepResult) -> tuple[str, str]:
    """How a call ended, in one word and its colour."""
    if result.ok and result.exit_code is not None:
        return f"exit {result.exit_code}", "yellow" if result.exit_code else "green"
    if result.ok and result.hits is not None:
        return counted(result.hits, "hit"), "green" if result.hits else "yellow"
    if result.ok:
        return "ok", "green"
    kind = by_code(result.error or "")
    if issubclass(kind, PolicyError | ModeRefused):
        return "refused", "red"
    return ("denied", "yellow") if issubclass(kind, ApprovalDenied) else ("failed", "yellow")


def output_lines(result: StepResult, columns: int) -> list[str]:
    """The end of what a command said, without the command itself; nothing for other tools."""
    if not result.ok or result.exit_code is None:
        return []
    # The ending is in the verdict, unless it says more than the exit code.
    known = f"[exit code {result.exit_code}]"
    lines = [line for line in visible(result.text.strip("\n")).split("\n") if line != known]
    lines = lines[1:] if lines[0].startswith("$ ") else lines
    hidden = len(lines) - MOST_OUTPUT_LINES
    before = [f"… {counted(hidden, 'line')} before"] if hidden > 0 else []
    return [*before, *(clip(line, columns) for line in lines[-MOST_OUTPUT_LINES:])]


def describe_diff(diff: Diff) -> str:
    """A change in a few words."""
    if not diff.diff and diff.kind == "changed":
        return f"{one_line(diff.path)} unchanged"
    kind = diff.kind if diff.applied else f"would be {diff.kind}"
    modes = _MODES.match(diff.diff)
    mode = f", mode {modes[1]} → {modes[2]}" if modes else ""
    return f"{one_line(diff.path)} {kind} +{diff.added} -{diff.removed}{mode}"


def without_modes(diff: str) -> str:
    """A diff without the lines that name changed modes: they are said above it."""
    return _MODES.sub("", diff, count=1)


def plan_part(task: Mapping[str, Any]) -> str:
    """One task of a plan in a few words."""
    after = ", ".join(task.get("depends_on") or ())
    return f"{task.get('id')}: {task.get('title')}{f' (after {after})' if after else ''}"


def describe_repair(attempt: RepairAttempt) -> str:
    """Describe one attempt to fix something in a few words."""
    before = counted(attempt.failures_before, "failure")
    ended = "green" if attempt.green else f"{attempt.failures_after} left"
    words = {
        "rejected": "rejected, restored",
        "same": f"{ended}, taken back" if attempt.paths else "nothing changed",
        "worse": f"{ended}, worse, taken back",
    }
    what = f" {', '.join(attempt.paths[:5])}" if attempt.paths else ""
    return one_line(
        f"{attempt.number}: {attempt.by}{what} → {before}, {words.get(attempt.step, ended)}"
    )


def repair_style(attempt: RepairAttempt) -> tuple[str, ...]:
    """The colour of a try: green, or yellow where something is left."""
    return ("green",) if attempt.green else ("dim",) if attempt.kept else ("yellow",)


def describe_check(check: Verification) -> str:
    """A check of the harness in a few words."""
    ended = "not run" if check.exit_code is None else f"exit {check.exit_code}"
    # The trace has the whole path of the program; here its name says enough.
    program, *rest = check.command or ("",)
    command = " ".join([program.rpartition("/")[2], *rest])
    return one_line(f"{check.kind}: {command} → {ended}. {check.summary}")


def describe_final(final: Final, *, dry: bool = False) -> str:
    """The end of a task in a few words."""
    files = f"{counted(len(final.changed), 'file')} {'would change' if dry else 'changed'}"
    parts = [files, *([final.verified] if final.verified and not dry else [])]
    parts += [f"{len(final.rolled_back)} rolled back"] if final.rolled_back else []
    if final.tasks > 1:
        parts.insert(0, f"{final.tasks_done} of {final.tasks} tasks done")
    parts += [counted(final.turns, "turn")]
    tokens = final.input_tokens + final.output_tokens
    parts += [counted(tokens, "token")] if tokens else []
    parts += [f"${final.cost_usd:.4f}"] if final.cost_usd is not None else []
    return ", ".join([*parts, seconds(final.duration_ms)])


def seconds(milliseconds: int) -> str:
    """A duration as people say it."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds // 1000 % 60} s"


def painted_diff(screen: Screen, diff: str) -> list[str]:
    """The lines of a diff in colours; outside a terminal it stays a patch that applies."""
    lines = diff.rstrip("\n").split("\n")
    everywhere = all(line.endswith("\r") for line in lines[2:] if line[:1] in ("+", "-", " "))
    end = "\r" if not screen.is_terminal else "" if everywhere else "\\x0d"
    return [screen.paint(_line_of_diff(line, end), *diff_style(line)) for line in lines]


def _line_of_diff(line: str, end: str) -> str:
    return visible(line[:-1]) + end if line.endswith("\r") else visible(line)


def diff_style(line: str) -> tuple[str, ...]:
    """How a line of a diff is painted."""
    if line.startswith(("+++", "---")):
        return ("bold",)
    if line.startswith("@@"):
        return ("cyan",)
    return {"+": ("green",), "-": ("red",)}.get(line[:1], ())
