"""Define the records of the journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.files.journal_segments import SegmentPlace, scan
from evercontext.files.links_and_directories import Creations, RemovedCreations


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One file before and after one change. A hash of ``None``: it did not or does not exist."""

    id: str
    trace_id: str
    step: str | None
    at: int
    path: str
    before: str | None
    before_mode: int | None
    owner: tuple[int, int] | None
    after: str | None
    after_mode: int | None
    directories: tuple[str, ...]
    """Directories that the change made, outermost first."""
    temporary: str
    unsure: str = ""
    """The command that ran meanwhile, where the change is more likely somebody else's."""

    @property
    def changes(self) -> bool:
        """False if the file was written again as it was."""
        return self.before != self.after or self.after_mode not in (None, self.before_mode)

    def record(self) -> dict[str, Any]:
        """Return the entry as it is written."""
        return {"kind": "intent", **{name: getattr(self, name) for name in self.__slots__}}

    @classmethod
    def of(cls, record: dict[str, Any]) -> JournalEntry:
        """Read an entry back."""
        fields = {name: record[name] for name in cls.__slots__ if name in record}
        owner = fields.pop("owner")
        directories = tuple(fields.pop("directories"))
        return cls(**fields, owner=tuple(owner) if owner else None, directories=directories)


@dataclass(frozen=True, slots=True)
class StepInfo:
    """Changes that belong together, and the entries that they take back if they are an undo."""

    step: str
    trace_id: str
    at: int
    undoes: tuple[str, ...]
    during: str = ""
    """The task that took back a part of its own work while it ran, as a repair does."""


class History:
    """Everything that some segments say, in order of time."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.steps: dict[str, StepInfo] = {}
        self.blobs: dict[str, SegmentPlace] = {}
        self.marks: dict[str, int] = {}
        self.done: set[str] = set()
        self.intents: list[JournalEntry] = []
        self.creations: list[Creations] = []
        self.unmade: list[RemovedCreations] = []
        self._void: set[str] = set()
        self._aborted: set[str] = set()
        self.committed: set[str] = set()
        for file in files:
            for record, place in scan(file):
                self._take(record, place)
        self.intents.sort(key=lambda entry: entry.at)

    @property
    def entries(self) -> list[JournalEntry]:
        """The changes that were made, or may have been made when something broke."""
        return [
            entry
            for entry in self.intents
            if entry.id not in self._void and entry.step not in self._aborted
        ]

    def unfinished(self) -> list[JournalEntry]:
        """Return the entries of steps that were begun and neither committed nor taken back."""
        open_steps = self.steps.keys() - self.committed - self._aborted
        return [entry for entry in self.entries if entry.step in open_steps]

    def undone(self) -> dict[str, StepInfo]:
        """Return the entries taken back and not brought back since, each with the step that did."""
        gone: dict[str, StepInfo] = {}
        by_id = {entry.id: entry for entry in self.intents}
        for step in sorted(self.steps.values(), key=lambda step: step.at):
            if step.step in self._aborted or step.step not in self.committed:
                continue
            for id in step.undoes:
                gone[id] = step
                entry = by_id.get(id)
                if entry and entry.step in self.steps:
                    for earlier in self.steps[entry.step].undoes:
                        gone.pop(earlier, None)
        return gone

    def _take(self, record: dict[str, Any], place: SegmentPlace | None) -> None:
        kind = record.get("kind")
        if place is not None:
            self.blobs[record["blob"]] = place
        elif kind == "intent":
            self.intents.append(JournalEntry.of(record))
        elif kind == "begin":
            undoes, during = tuple(record["undoes"]), record.get("during", "")
            info = StepInfo(record["step"], record["trace_id"], record["at"], undoes, during)
            self.steps[info.step] = info
        elif kind == "made":
            self.creations.append(Creations.of(record))
        elif kind == "unmade":
            self.unmade.append(RemovedCreations.of(record))
        elif kind == "mark":
            self.marks[record["mark"]] = record["at"]
        elif kind == "commit":
            self.committed.add(record["step"])
        elif kind == "abort":
            self._aborted.add(record["step"])
        elif kind == "done":
            self.done.update(record["ids"])
        elif kind == "void":
            self._void.update(record["ids"])
