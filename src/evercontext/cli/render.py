"""Events → terminal. Append-only: a line once ended is never touched again.

Progress goes to stderr; the answer, and in a dry run the diffs, go to stdout.
"""

from __future__ import annotations

from evercontext.cli.diff_lines import numbered_diff
from evercontext.cli.event_text import (
    describe_check,
    describe_diff,
    describe_final,
    describe_repair,
    error_line,
    manner,
    output_lines,
    plan_part,
    repair_style,
    seconds,
    shown_tool,
    subject,
    verdict,
    without_modes,
)
from evercontext.cli.live_region import LiveRegion, live_height
from evercontext.cli.markdown import MarkdownStream, rendered
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import (
    Screen,
    clip,
    columns_of,
    counted,
    labelled,
    one_line,
    visible,
    wrap,
)
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

MOST_DIFF_LINES = 200
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
                text = translate("repair {what}", what=describe_repair(attempt))
                self._err.line(f"  {text}", *repair_style(attempt))
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
            if self._blocks and len(lines) < rows:
                lines.insert(0, "")
        about = " · ".join([f"… {self._label}", *self._clock.parts()])
        return [*lines, self._err.paint(clip(f"  {about}", self._err.width - 1), "dim")]

    def _task(self, task: Task) -> None:
        self._dry = task.mode == Mode.DRY_RUN
        place = (
            translate("files behind {gateway}", gateway=self._gateway)
            if self._gateway
            else translate("root {root}", root=task.root)
        )
        if self._brief:
            return
        what = [translate("model {name}", name=task.model), place]
        what += [translate("dry run: nothing is written")] if self._dry else []
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
        self._err.line(f"{self._err.paint(translate('now'), 'cyan')} {one_line(part.title)}")

    def _rolled_back(self, rollback: RolledBack) -> None:
        self.pause()
        for path in (*rollback.restored, *rollback.removed):
            text = translate("rolled back {path}", path=one_line(path))
            self._err.line(f"  {text}", "yellow")
        for unrestored in rollback.kept:
            why = f"{unrestored.get('path')} ({unrestored.get('reason')})"
            self._err.line("  " + translate("kept {what}", what=one_line(why)), "yellow")

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
        name, about = f"{shown_tool(step.tool)}{manner(step)}", subject(step.arguments)
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
        took = f"  {seconds(result.duration_ms)}" if result.ok else ""
        if result.ok and self._dry and step and {"write", "execute"} & {*step.effects}:
            word, colour, took = translate("not done"), "dim", ""
        self._err.line(f"  {self._err.paint(word, colour)}{self._err.paint(took, 'dim')}")
        if not result.ok:
            text = translate_composed(one_line(result.text))
            for line in wrap(text, self._err.width - 5):
                self._err.line(f"    {line}")
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
                line = self._err.wrapped(labelled(level, text))
                self._err.line(line, "dim" if level == "info" else "yellow")
            case Retry(reason=reason):
                self._err.line(self._err.wrapped(labelled("again", reason)), "yellow")
            case Verification() as check:
                self._err.line("  " + translate("check {what}", what=describe_check(check)))
            case Plan(tasks=tasks, source=source) if len(tasks) > 1:
                self._err.line(translate("plan ({source})", source=one_line(source)), "bold")
                for task in tasks:
                    self._err.line(f"  {one_line(plan_part(task))}")
            case TaskEnded(title=title, status=status):
                self._beside -= status != "skipped"
                colour = _COLOURS.get(status, "red")
                self._err.line(f"{self._err.paint(translate(status), colour)} {one_line(title)}")

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
            text, colour = error_line(final)
            self._err.line(self._err.wrapped(text), colour)
        if final.note:
            self._err.line(self._err.wrapped(labelled("info", final.note)), "yellow")
        colour = _COLOURS.get(final.status, "red")
        word = translate(final.status)
        line = self._err.wrapped(f"{word}  {describe_final(final, dry=self._dry)}")
        self._err.line(self._err.paint(word, "bold", colour) + line.removeprefix(word))
        if not self._brief:
            self._footer(final)

    def _footer(self, final: Final) -> None:
        short = self._trace_id[:_SHORT_ID]
        hints = [(f"evercontext trace show {short}", translate("what happened"))]
        if set(final.changed) - set(final.not_undoable) and not self._dry:
            back = "take it back, where the files are" if self._gateway else "take it back"
            hints.append((f"evercontext undo {short}", translate(back)))
        if final.tasks_done < final.tasks and not self._dry and not final.rolled_back:
            meaning = translate("go on where it stopped")
            hints.append((f"evercontext run --resume {short}", meaning))
        width = max(len(command) for command, _ in hints)
        longest = max(columns_of(meaning) for _, meaning in hints)
        # On a narrow screen the meaning stands below, instead of being broken somewhere.
        between = "   " if width + longest + 9 < self._err.width else "\n        "
        self._err.line(translate("trace {id}", id=self._trace_id), "dim")
        for command, meaning in hints:
            padded = command.ljust(width) if between == "   " else command
            self._err.line(f"      {padded}{between}{meaning}", "dim")


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
