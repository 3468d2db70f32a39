"""Fold the outcomes of tests into a matrix: program and version by entrance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from tests.real.registry import ENTRANCES, PROGRAMS

Verdict = Literal["ok", "failed", "skipped"]
_WORST_FIRST: tuple[Verdict, ...] = ("failed", "ok", "skipped")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test of a program at an entrance ended."""

    program: str
    version: str
    entrance: str
    test: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """All tests of one program, version and entrance."""

    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> Verdict:
        """Failed if one failed, ok if one passed, else skipped."""
        verdicts = {outcome.verdict for outcome in self.outcomes}
        return next(verdict for verdict in _WORST_FIRST if verdict in verdicts)

    @property
    def text(self) -> str:
        """The verdict and, where it says more, how many tests stand behind it."""
        same = sum(outcome.verdict == self.verdict for outcome in self.outcomes)
        total = len(self.outcomes)
        return f"{self.verdict} {same}/{total}" if total > 1 else self.verdict


class Matrix:
    """The outcomes of one run."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes = tuple(outcomes)

    def cell(self, program: str, version: str, entrance: str) -> Cell | None:
        """Return the tests of one cell, None where there are none."""
        place = (program, version, entrance)
        matching = tuple(
            outcome
            for outcome in self.outcomes
            if (outcome.program, outcome.version, outcome.entrance) == place
        )
        return Cell(matching) if matching else None

    def lines(self) -> list[str]:
        """Return the matrix as a table of Markdown, and below it the reasons."""
        head = ["program", "version", *ENTRANCES]
        rows = [[*row, *(self._text(*row, entrance) for entrance in ENTRANCES)] for row in _rows()]
        shown = [row for row in rows if any(text != "·" for text in row[2:])]
        widths = [max(len(row[n]) for row in [head, *shown]) for n in range(len(head))]
        table = [_line(row, widths) for row in [head, ["-" * width for width in widths], *shown]]
        return [*table, "", *self._reasons(), self._sum()]

    def _text(self, program: str, version: str, entrance: str) -> str:
        cell = self.cell(program, version, entrance)
        return cell.text if cell else "·"

    def _reasons(self) -> list[str]:
        reasons = [outcome for outcome in self.outcomes if outcome.verdict != "ok"]
        return [
            f"{each.verdict}: {each.program} {each.version}, {each.entrance}, {each.test}:"
            f" {each.reason}"
            for each in sorted(reasons, key=lambda each: (each.verdict, each.program, each.test))
        ]

    def _sum(self) -> str:
        cells = {(each.program, each.version, each.entrance) for each in self.outcomes}
        verdicts = [cell.verdict for place in cells if (cell := self.cell(*place))]
        counts = (f"{verdicts.count(verdict)} {verdict}" for verdict in _WORST_FIRST)
        return f"{len(cells)} cells of {len(self.outcomes)} tests: {', '.join(counts)}"

    def json(self) -> str:
        """Return the outcomes and the verdict of each cell as JSON."""
        cells = [
            {"program": program, "version": version, "entrance": entrance, "verdict": cell.verdict}
            for program, version in _rows()
            for entrance in ENTRANCES
            if (cell := self.cell(program, version, entrance))
        ]
        return json.dumps(
            {"cells": cells, "tests": [asdict(outcome) for outcome in self.outcomes]},
            indent=1,
            ensure_ascii=False,
        )


def _rows() -> list[tuple[str, str]]:
    return [
        (program.name, version) for program in PROGRAMS.values() for version in program.versions
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
