"""Find the one name that a misspelt name stands for, if there is only one."""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 3


def nearest(wrong: str, names: Iterable[str]) -> str | None:
    """Return the only name that is nearest to a misspelt one, or ``None``."""
    ranked = ranked_nearest(wrong, names)
    if not ranked or (len(ranked) > 1 and ranked[1][0] == ranked[0][0]):
        return None
    return ranked[0][1]


def ranked_nearest(wrong: str, names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the names within reach, nearest first; case and underscores are half a mistake."""
    reach = 1 if len(wrong) < 5 else 2
    ranked: list[tuple[int, str]] = []
    for name in set(names) - {wrong}:
        if len(name) < _SHORTEST or len(wrong) < _SHORTEST or name.startswith("__"):
            continue
        if _folded(name) == _folded(wrong):
            ranked.append((0, name))
        elif abs(len(name) - len(wrong)) <= reach:
            far = distance(wrong, name)
            if far <= reach:
                ranked.append((far, name))
    return sorted(ranked)


def distance(word: str, other: str) -> int:
    """Return how many letters are missing, too many, wrong, or swapped with their neighbour."""
    older: list[int] = []
    last: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        older, last, row = last, row, [i]
        for j, mark in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != mark))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == mark:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _folded(name: str) -> str:
    return name.replace("_", "").lower()
