"""Read SEARCH/REPLACE blocks, as aider and Cline have models write them.

Line by line: what a model repeats without end must not take more time than its length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SEARCH = re.compile(r"(?:<{5,9} ?|-{7} )SEARCH")
_DIVIDER = re.compile(r"={5,9}")
_REPLACE = re.compile(r"(?:>{5,9} ?|\+{7} )REPLACE")


@dataclass(frozen=True, slots=True)
class SearchReplaceBlock:
    """One block: its lines ``first`` to ``last``, the text to find and the text in its place."""

    first: int
    last: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the block as aider spells it."""
        lines = ("<<<<<<< SEARCH", *self.old, "=======", *self.new, ">>>>>>> REPLACE")
        return "\n".join(lines)


def read_blocks(lines: Sequence[str]) -> list[SearchReplaceBlock]:
    """Return the blocks among some lines; none if one of them is broken."""
    blocks: list[SearchReplaceBlock] = []
    first = divider = -1
    for number, line in enumerate(lines):
        if opening := _SEARCH.match(line):
            if first >= 0 or line[opening.end() :] not in ("", ">"):
                return []
            first, divider = number, -1
        elif first < 0:
            continue
        elif divider < 0:
            divider = number if _DIVIDER.fullmatch(line) else -1
        elif _REPLACE.match(line):
            old, new = lines[first + 1 : divider], lines[divider + 1 : number]
            blocks.append(SearchReplaceBlock(first, number, tuple(old), tuple(new)))
            first = -1
    return blocks if first < 0 else []
