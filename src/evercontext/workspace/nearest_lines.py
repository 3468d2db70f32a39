"""Find the lines most like a text that does not match."""

from __future__ import annotations

from evercontext.tools.line_comparison import Comparison

_SHOWN = 12
_CANDIDATES = 30
_LONGEST_LINE = 160
_COMPARED = 4000
"""Characters of a run that are compared."""
_MOST_LINES = 200
"""Lines that are looked for; more of them tell nothing new."""
_STEPS = 3_000_000
"""Pairs of equal characters that are looked at, in all candidates together."""


def describe_nearest(text: str, passage: str) -> str:
    """Return the part of ``text`` most like ``wanted``, with line numbers, as advice."""
    lines, want = text.splitlines(), passage.strip("\n").splitlines()[:_MOST_LINES]
    start = _nearest(lines, want)
    if start is None:
        return "Read the file again and copy the lines exactly"
    shown = lines[start : start + min(len(want), _SHOWN)]
    numbered = "\n".join(
        f"{number:5} | {line[:_LONGEST_LINE]}" for number, line in enumerate(shown, start + 1)
    )
    return f"The nearest lines are:\n{numbered}"


def _nearest(lines: list[str], want: list[str]) -> int | None:
    """Return where the most similar run of lines begins, if anything is similar at all."""
    windows = _promising(lines, want)
    passage = "\n".join(line.strip() for line in want)[:_COMPARED]
    best, where = 0.4, None
    matcher = Comparison("", passage, steps=_STEPS, autojunk=False)
    for start in windows:
        near = "\n".join(line.strip() for line in lines[start : start + len(want)])[:_COMPARED]
        matcher.set_seq1(near)
        if matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, where = ratio, start
    return where


def _promising(lines: list[str], want: list[str]) -> list[int]:
    """Cheaply choose runs that share words with what is wanted."""
    words = set(" ".join(want).split())
    scores = [len(words & set(line.split())) for line in lines]
    size = min(len(want), len(lines))
    total = sum(scores[:size])
    windows = [(total, 0)] if size else []
    for start in range(1, len(lines) - size + 1):
        total += scores[start + size - 1] - scores[start - 1]
        windows.append((total, start))
    windows.sort(key=lambda window: (-window[0], window[1]))
    return [start for total, start in windows[:_CANDIDATES] if total]
