"""Record the calls and changes of a run so far, for the judgement of its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from evercontext.agent.repetition import exit_code
from evercontext.domain.message import ToolCall
from evercontext.domain.tool import FileChange, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import HookBlocked, ModeRefused

_LONGEST = 200


@dataclass(slots=True)
class Progress:
    """The calls and changes of a run so far; kept even when an exception ends it."""

    refusals: list[str] = field(default_factory=list)
    changed: dict[str, bool] = field(default_factory=dict)
    """Files written; ``False``: they are as they were."""
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    writes: int = 0
    """Calls that changed a file."""
    denied: bool = False
    failed_call: str = ""
    """The tool of a call that was to do something and failed, until another makes it good."""
    failure: str = ""
    """Why that call failed, in one line."""
    blocked: bool = False
    """That call failed because a hook said no."""
    failed_edit: bool = False
    """That call was to change files: a command that changes none does not make it good."""
    achieved: bool = False
    """A call that succeeded really changed a file."""
    failed_command: int | None = None
    """How the last command ended, where it ended badly."""
    printed: str = ""
    """The tool of a call that was only written as text, until a call makes it good."""
    not_undoable: set[str] = field(default_factory=set)
    """Of the changed files those whose old content was too large to be kept."""
    unwritten: dict[str, str] = field(default_factory=dict)
    """Files that a call could not change and none changed since, with the tool of that call."""

    @property
    def undo_note(self) -> str:
        """Name the changed files that an undo does not bring back."""
        paths = sorted(self.not_undoable)
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        return f"cannot be undone: {', '.join(paths[:5])}{more}" if paths else ""

    def add(self, other: Progress) -> None:
        """Add the progress of another loop of the same run."""
        self.refusals += other.refusals
        self.add_changes(other)
        self.denied = self.denied or other.denied
        self.failed_call, self.failed_edit = other.failed_call, other.failed_edit
        self.failure, self.blocked = other.failure, other.blocked
        self.printed = other.printed
        self.achieved = self.achieved or other.achieved
        self.failed_command = other.failed_command
        self._settle(other.changed)
        self.unwritten |= other.unwritten

    def add_changes(self, other: Progress) -> None:
        """Take in what was changed elsewhere, later than here."""
        for path, real in other.changed.items():
            self.changed[path] = real or self.changed.get(path, False)
        for path in other.deleted:
            self._delete(path)
        for path in other.created:
            self._create(path)
        self.writes += other.writes
        self.not_undoable |= other.not_undoable

    def _create(self, path: str) -> None:
        if path in self.deleted:
            self.deleted.discard(path)
        else:
            self.created.add(path)

    def _delete(self, path: str) -> None:
        """What was made here and is gone again is no change."""
        if path in self.created:
            self.created.discard(path)
            self.changed[path] = False
            self.not_undoable.discard(path)
        else:
            self.deleted.add(path)

    def note(
        self, call: ToolCall, result: ToolResult, *, acts: bool = True, edits: bool = False
    ) -> None:
        """Take in one result.

        ``acts``: the call was to do something, not only to look; ``edits``: to change files.
        """
        # What the mode forbids is no failure: a plan is all that was asked for.
        if acts and not isinstance(result.error, ModeRefused):
            self.failed_command = exit_code(result) or None
            if result.ok and not self.failed_command:
                self.printed = ""
            if not result.ok:
                self.failed_call, self.failed_edit = _name(call), edits
                self.failure = escaped_line((result.text.splitlines() or [""])[0], _LONGEST)
                self.blocked = isinstance(result.error, HookBlocked)
                path = call.arguments.get("path") if isinstance(call.arguments, dict) else None
                if edits and isinstance(path, str):
                    self.unwritten[path] = _name(call)
            elif self._makes_good(call, result):
                self.failed_call, self.failed_edit = "", False
                self.failure, self.blocked = "", False
        if result.ok and not exit_code(result):
            self.achieved = self.achieved or any(change.real for change in result.changes)
        self.count(result.changes)

    def count(self, changes: Sequence[FileChange]) -> None:
        """Take in what was changed, whoever did it."""
        for change in changes:
            real = change.real
            self.writes += real
            self.changed[change.path] = real or self.changed.get(change.path, False)
            if not change.undoable:
                self.not_undoable.add(change.path)
            if change.before is None and change.after is not None:
                self._create(change.path)
            elif change.after is None and change.before is not None:
                self._delete(change.path)
        self._settle(change.path for change in changes)

    def take_in(self, part: Progress) -> None:
        """Take in what a sub-agent did; one that only looked leaves what failed before as it is."""
        failed = self.failed_call, self.failed_edit, self.failure, self.blocked
        command, printed = self.failed_command, self.printed
        self.add(part)
        if not (part.failed_call or part.failed_command or part.achieved):
            self.failed_call, self.failed_edit, self.failure, self.blocked = failed
            self.failed_command = command
            self.printed = part.printed or printed

    def note_delegated(self, call: ToolCall, result: ToolResult) -> None:
        """Take in how a sub-agent's work ended; its own calls are known already."""
        finished = not isinstance(result.data, dict) or result.data.get("finished", True)
        if not (result.ok and finished):
            self.failed_call, self.failed_edit = _name(call), False
            self.failure = escaped_line((result.text.splitlines() or [""])[0], _LONGEST)
            self.blocked = isinstance(result.error, HookBlocked)
        elif self.failed_call == _name(call):
            self.failed_call, self.failure, self.blocked = "", "", False

    def _settle(self, changed: Iterable[str]) -> None:
        """Drop paths that were written after all; the first try may have erred."""
        names = {PurePosixPath(path).name for path in changed}
        for path in [path for path in self.unwritten if PurePosixPath(path).name in names]:
            del self.unwritten[path]

    def _makes_good(self, call: ToolCall, result: ToolResult) -> bool:
        if self.failed_command:
            return False
        return not self.failed_edit or _name(call) == self.failed_call or bool(result.changes)


def _name(call: ToolCall) -> str:
    """Return the name of a call for the screen: the model may use any name, or none."""
    return escaped_line(call.name, 80) or "a call"
