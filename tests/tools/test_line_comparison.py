from __future__ import annotations

import difflib
import random

from hypothesis import given
from hypothesis import strategies as st

from evercontext.tools.line_comparison import STEPS, Comparison, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=30)


@given(LINES, LINES)
def test_a_small_comparison_is_the_one_everybody_knows(old: list[str], new: list[str]) -> None:
    known = list(difflib.unified_diff(old, new, "x", "y"))
    assert list(unified(old, new, ("x", "y"))) == known


@given(LINES, LINES, st.integers(0, 40))
def test_a_comparison_that_ran_out_of_steps_is_still_right(
    old: list[str], new: list[str], steps: int
) -> None:
    rebuilt: list[str] = []
    for kind, a, b, c, d in Comparison(old, new, steps=steps).get_opcodes():
        assert kind != "equal" or old[a:b] == new[c:d]
        rebuilt += new[c:d]
    assert rebuilt == new


def test_hostile_lines_take_no_more_steps_than_there_are() -> None:
    """X8: lines that are alike in every way but their order, for which difflib takes minutes."""
    dice = random.Random(1)
    old = [f"{number % 97}\n" for number in range(1900)]
    new = [f"{dice.randrange(97)}\n" for _ in range(1900)]
    looked_at = 0

    class Counted(Comparison):
        def find_longest_match(
            self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
        ) -> difflib.Match:
            nonlocal looked_at
            before = self.steps
            match = super().find_longest_match(alo, ahi, blo, bhi)
            looked_at += before - self.steps if self.steps >= 0 else 0
            return match

    assert sum(d - c for _, _, _, c, d in Counted(old, new).get_opcodes()) == len(new)
    assert looked_at <= STEPS
