"""Compare lines in bounded time; a comparison that gets too hard ends as a replacement.

difflib takes the square of its input and more. A comparison here has a budget of steps; when it
is spent, what is left counts as different. The result is always a correct difference, only not
always the shortest one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

STEPS = 300_000
"""Pairs of equal lines that are looked at: a tenth of a second of work."""


class Comparison(difflib.SequenceMatcher[str]):
    """difflib's, which stops looking for what is common once its steps are spent."""

    def __init__(
        self, old: Sequence[str], new: Sequence[str], *, steps: int = STEPS, autojunk: bool = True
    ) -> None:
        self.steps = steps
        super().__init__(None, old, new, autojunk)

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """Return the longest common run, or none if finding it would cost too much."""
        old: Sequence[str] = self.a  # type: ignore[attr-defined]
        end = len(old) if ahi is None else ahi
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]
        for item in old[alo:end]:
            self.steps -= 1 + len(places.get(item, ()))
            if self.steps < 0:
                return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, end, blo, bhi)


def unified(
    old: Sequence[str], new: Sequence[str], names: tuple[str, str], *, context: int = 3
) -> Iterator[str]:
    """Yield a unified diff of lines with their ends, as ``difflib.unified_diff`` does."""
    started = False
    for group in Comparison(old, new).get_grouped_opcodes(context):
        if not started:
            started = True
            yield from (f"--- {names[0]}\n", f"+++ {names[1]}\n")
        (_, first_old, _, first_new, _), (_, _, last_old, _, last_new) = group[0], group[-1]
        yield f"@@ -{_span(first_old, last_old)} +{_span(first_new, last_new)} @@\n"
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[old_start:old_end])
                continue
            yield from (f"-{line}" for line in old[old_start:old_end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _span(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
