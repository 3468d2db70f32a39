"""What a run has done so far, as the judgement of its end needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from evercontext.agent.repetition import exit_code
from evercontext.domain.message import ToolCall
from evercontext.domain.tool import ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import ModeRefused


@dataclass(slots=True)
class Progress:
    """What a run has done so far; kept even when an exception ends it."""

    refusals: list[str] = field(default_factory=list)
    changed: dict[str, bool] = field(default_factory=dict)
    """Files written; ``False``: only with the content they had."""
    writes: int = 0
    """Calls that changed a file."""
    denied: bool = False
    failed_call: str = ""
    """The tool of a call that was to do something and failed, until another makes it good."""
    failed_edit: bool = False
    """That call was to change files: a command that changes none does not make it good."""
    achieved: bool = False
    """A call that succeeded really changed a file."""
    failed_command: int | None = None
    """How the last command ended, where it ended badly."""

    def add(self, other: Progress) -> None:
        """Take in what another loop of the same run has done."""
        self.refusals += other.refusals
        for path, real in other.changed.items():
            self.changed[path] = real or self.changed.get(path, False)
        self.writes += other.writes
        self.denied = self.denied or other.denied
        self.failed_call, self.failed_edit = other.failed_call, other.failed_edit
        self.achieved = self.achieved or other.achieved
        self.failed_command = other.failed_command

    def note(
        self, call: ToolCall, result: ToolResult, *, acts: bool = True, edits: bool = False
    ) -> None:
        """Take in one result.

        ``acts``: the call was to do something, not only to look; ``edits``: to change files.
        """
        # What the mode forbids is no failure: a plan is all that was asked for.
        if acts and not isinstance(result.error, ModeRefused):
            self.failed_command = exit_code(result) or None
            if not result.ok:
                self.failed_call, self.failed_edit = _name(call), edits
            elif self._makes_good(call, result):
                self.failed_call, self.failed_edit = "", False
        if result.ok and not exit_code(result):
            self.achieved = self.achieved or any(change.real for change in result.changes)
        for change in result.changes:
            real = change.real
            self.writes += real
            self.changed[change.path] = real or self.changed.get(change.path, False)

    def _makes_good(self, call: ToolCall, result: ToolResult) -> bool:
        if not self.failed_edit or _name(call) == self.failed_call:
            return True
        return bool(result.changes) and not self.failed_command


def _name(call: ToolCall) -> str:
    """What a call is called on the screen: the model may ask for a tool by any name, or by none."""
    return escaped_line(call.name, 80) or "a call"
