"""Break a project, mend it, and say what the checks found before and after."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext import testing
from evercontext.agent.project_repair import RepairReport, repair_project
from evercontext.domain.event import Event, RepairAttempt
from tests.agent.repair.mutations import Mutation
from tests.agent.repair.samples import Sample

TRIES = 12
"""Mutations that break nothing that a test sees are drawn again."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one broken project."""

    sample: str
    mutation: str
    language: str
    before: str
    after: str
    green: bool
    moves: int
    worse: bool
    untouched: bool
    """Every byte as the mutation left it."""
    detail: str = ""


def lay_out(root: Path, files: dict[str, str]) -> None:
    """Write a project."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")


def contents(root: Path, files: dict[str, str]) -> dict[str, str]:
    """The project's files as they are now."""
    return {
        name: (root / name).read_text(encoding="utf-8") for name in files if (root / name).is_file()
    }


def flags_of(sample: Sample, mutation: Mutation) -> dict[str, Any]:
    """Which checks are run: the tests, or a linter alone."""
    if mutation.lint:
        return {"lint_cmd": f"{sys.prefix}/bin/{mutation.lint}", "auto_test": False}
    return {"lint_cmd": "true", **sample.settings}


def broken(sample: Sample, mutation: Mutation, seed: str) -> dict[str, str] | None:
    """The files of a sample after one mutation."""
    made = mutation.mutate(dict(sample.files), random.Random(seed))
    return dict(made) if made is not None and dict(made) != dict(sample.files) else None


async def try_out(folder: Path, sample: Sample, mutation: Mutation, seed: int) -> Trial | None:
    """Break, mend without a model, and judge; ``None`` if the mutation does not fit the sample."""
    for number in range(TRIES):
        files = broken(sample, mutation, f"{seed} {sample.name} {mutation.name} {number}")
        if files is None:
            continue
        place = folder / re.sub(r"\W+", "-", f"{sample.name} {mutation.name} {number}")
        lay_out(place / "project", files)
        moves: list[RepairAttempt] = []

        def note(event: Event, moves: list[RepairAttempt] = moves) -> None:
            if isinstance(event.body, RepairAttempt):
                moves.append(event.body)

        async with testing.house(place, **flags_of(sample, mutation)) as app:
            app.events.subscribe(note)
            done = await repair_project(app, trace_id=f"trial-{number}")
        if done.before.verdict == "red":
            same = contents(place / "project", files) == files
            return _judged(sample, mutation, done, moves, same)
    return None


def _judged(
    sample: Sample, mutation: Mutation, done: RepairReport, moves: list[RepairAttempt], same: bool
) -> Trial:
    before, after = ({f.key for f in found.failures} for found in (done.before, done.after))
    said = done.before.failures[0].message.splitlines()[0] if done.before.failures else ""
    how = ", ".join(f"{move.by}:{move.step}" for move in moves)
    return Trial(
        sample.name,
        mutation.name,
        mutation.language,
        f"{done.before.passed} passed, {len(before)} failed",
        f"{done.after.passed} passed, {len(after)} failed",
        done.after.verdict == "verified",
        len(moves),
        bool(after - before) or done.after.passed < done.before.passed,
        same,
        f"{how} | {said[:110]}",
    )
