"""Events → the chat's scrollback. Every line is written once."""

from __future__ import annotations

from collections.abc import Callable

from evercontext.agent import todo
from evercontext.cli.diff_lines import numbered_diff
from evercontext.cli.event_text import (
    denied,
    describe_call,
    describe_check,
    describe_diff,
    describe_final,
    describe_repair,
    error_line,
    repair_style,
    seconds,
    shown_tool,
    verdict,
    without_modes,
)
from evercontext.cli.live_region import live_height
from evercontext.cli.markdown import MarkdownStream, rendered
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import Screen, clip, counted, labelled, one_line, visible, wrap
from evercontext.cli.turn_clock import TurnClock
from evercontext.domain.check_verdicts import GREEN
from evercontext.domain.event import (
    Diff,
    Event,
    Final,
    ModelReply,
    Notice,
    RepairAttempt,
    Retry,
    Step,
    StepResult,
    Task,
    TaskBegan,
    TaskEnded,
    TextPiece,
    Verification,
)

MOST_DIFF_LINES = 60
_MOST_OUTPUT_LINES = 12
_COLOURS = {
    "done": "green",
    "red": "yellow",
    "limit": "yellow",
    "cancelled": "yellow",
    "denied": "yellow",
}


class ChatView:
    """Shows what happens in a conversation."""

    def __init__(
        self,
        screen: Screen,
        show: Callable[[str], None],
        draw: Callable[[Callable[[], list[str]] | None], None] = lambda source: None,
    ) -> None:
        self._screen, self._show, self._draw = screen, show, draw
        self._stream = MarkdownStream()
        self.clock = TurnClock()
        self._spoke = False
        self._plans = False
        self._steps: dict[str, Step] = {}
        self.seen: set[str] = set()
        """Files whose diff was just shown for approval: it is not shown again."""

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event.body:
            case TextPiece() as piece:
                self._piece(piece)
            case Task(mode=mode, door=door):
                # Planning alone belongs to the task that follows: it has no end of its own.
                self._plans = mode == "plan" and door == "run"
                self.clock.start()
                self._wait()
            case ModelReply() as reply:
                self._reply(reply)
            case Step() as step:
                self._steps[event.id] = step
                self._show(f"… {describe_call(step)}")
            case StepResult() as result:
                self._result(self._steps.pop(event.parent or "", None), result)
            case Diff() as diff:
                self._diff(diff)
            case Final() as final if not self._plans or final.error or final.note:
                self._final(final)
            case RepairAttempt() as attempt:
                self.pause()
                text = translate("repair {what}", what=describe_repair(attempt))
                self._screen.line(f"  {text}", *repair_style(attempt))
            case TaskBegan(title=title) | TaskEnded(title=title, status="skipped"):
                self.pause()
                word = "now" if isinstance(event.body, TaskBegan) else "skipped"
                self._screen.line(
                    f"{self._screen.paint(translate(word), 'cyan')} {one_line(title)}"
                )
            case Notice() | Retry() | Verification() as remark:
                self._aside(remark)

    def pause(self) -> None:
        """Show what was said so far, so that somebody else can write."""
        if left := self._stream.end():
            self._block(left)
        self._draw(None)
        self._show("")

    def _wait(self) -> None:
        self._show("… " + translate("the model is thinking"))

    def _piece(self, piece: TextPiece) -> None:
        self.clock.count(piece.text)
        if piece.thought:
            self._show("… " + translate("thinking"))
            return
        for block in self._stream.feed(piece.text):
            self._block(block)
        self._draw(self._unfinished)
        self._show("… " + translate("writing"))

    def _unfinished(self) -> list[str]:
        """Lay the growing block out; called when the screen is drawn, not for every token."""
        text = self._stream.unfinished(live_height())
        if not text:
            return []
        # As it will stand when it is finished: below an empty line.
        return ["", *rendered(text, self._screen).split("\n")[1 - live_height() :]]

    def _block(self, block: str) -> None:
        self._draw(None)
        self._screen.line()
        self._screen.line(rendered(block, self._screen))
        self._spoke = True

    def _reply(self, reply: ModelReply) -> None:
        self.pause()
        if reply.text.strip() and not self._spoke:
            self._block(reply.text.strip())
        self._spoke = False
        if reply.calls:
            self._screen.line()
            self._show("… " + translate("working"))

    def _result(self, step: Step | None, result: StepResult) -> None:
        word, colour = verdict(result)
        call = describe_call(step) if step else shown_tool(result.tool)
        call = clip(call, self._screen.width - 24)
        took = f" {seconds(result.duration_ms)}" if result.ok else ""
        mark = self._screen.paint(word, colour)
        self._screen.line(f"  {call}  {mark}{self._screen.paint(took, 'dim')}")
        if not result.ok:
            text = translate_composed(one_line(result.text))
            for line in wrap(text, self._screen.width - 5):
                self._screen.line(f"    {line}", *(("dim",) if denied(result) else ()))
        elif step and step.tool == todo.NAME:
            for line in todo.lines(step.arguments):
                self._screen.line(f"    {one_line(line)}")
        elif step and "execute" in step.effects:
            self._output(result.text)
        self._wait()

    def _output(self, text: str) -> None:
        lines = visible(text.strip("\n")).split("\n")
        hidden = len(lines) - _MOST_OUTPUT_LINES
        if hidden > 0:
            before = translate("{lines} before", lines=counted(hidden, "line"))
            self._screen.line(f"    … {before}", "dim")
        for line in lines[-_MOST_OUTPUT_LINES:]:
            self._screen.line(f"    {clip(line, self._screen.width - 5)}", "dim")

    def _diff(self, diff: Diff) -> None:
        self._screen.line(f"    {describe_diff(diff)}", "bold")
        if diff.path in self.seen:
            self.seen.discard(diff.path)
            return
        show_diff(self._screen, diff)

    def _aside(self, remark: Notice | Retry | Verification) -> None:
        self.pause()
        match remark:
            case Notice(level=level, text=text):
                style = "dim" if level == "info" else "yellow"
                self._screen.line(self._screen.wrapped(labelled(level, text)), style)
            case Retry(reason=reason):
                self._screen.line(self._screen.wrapped(labelled("again", reason)), "yellow")
                self._show(f"… {translate_composed(one_line(reason))}")
            case Verification() as check:
                good = check.verdict in GREEN
                text = translate("check {what}", what=describe_check(check))
                self._screen.line(f"  {text}", "green" if good else "yellow")

    def _final(self, final: Final) -> None:
        self.pause()
        self.seen.clear()
        self._screen.line()
        self.clock.stop()
        if final.error:
            text, colour = error_line(final)
            self._screen.line(self._screen.wrapped(text), colour)
        if final.note:
            self._screen.line(self._screen.wrapped(labelled("info", final.note)), "yellow")
        colour = _COLOURS.get(final.status, "red")
        word = translate(final.status)
        line = self._screen.wrapped(f"{word}  {describe_final(final)}").removeprefix(word)
        self._screen.line(self._screen.paint(word, colour) + self._screen.paint(line, "dim"))


def show_diff(screen: Screen, diff: Diff, most: int | None = MOST_DIFF_LINES) -> None:
    """Show the lines of a change, not too many unless all are asked for."""
    lines = numbered_diff(screen, without_modes(diff.diff), diff.path)
    for text in lines[:most]:
        screen.line(f"    {text}")
    if most is not None and len(lines) > most:
        more = counted(len(lines) - most, "more line")
        rest = translate("{file}: {more}, see /diff", file=one_line(diff.path), more=more)
        screen.line(f"    … {rest}", "dim")
