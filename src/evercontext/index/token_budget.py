"""Fit the results of a search into a number of tokens: signatures first, then whole pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evercontext.index.code_search import Answer, Hit

CountTokens = Callable[[str], int]
LEAST_BUDGET, MOST_BUDGET = 50, 100_000
_LONGEST_LINE = 200


def fit(answer: Answer, budget: int, count: CountTokens) -> Answer:
    """Return the answer within a budget: all signatures that fit, then texts, the best first."""
    hits = tuple(fitting_hits(answer.hits, budget, count))
    return replace(answer, hits=hits, budget=budget, left_out=len(answer.hits) - len(hits))


def fitting_hits(hits: Sequence[Hit], budget: int, count: CountTokens) -> list[Hit]:
    """Return the hits that fit, in their order; those without room for their text are shortened."""
    left = budget
    chosen: list[tuple[Hit, Hit, int]] = []
    for hit in hits:
        short = replace(hit, text=signature(hit), is_shortened=True)
        price = _price(short, count)
        if price <= left:
            left -= price
            chosen.append((hit, short, price))
    fitted: list[Hit] = []
    for hit, short, price in chosen:
        more = _price(hit, count) - price
        if more <= left:
            left -= max(more, 0)
            fitted.append(hit)
        else:
            fitted.append(short)
    return fitted


def _price(hit: Hit, count: CountTokens) -> int:
    """Return the tokens of a hit as it is shown: its place, its name, its text."""
    return count(f"{hit.path}:{hit.start_line}-{hit.end_line} ({hit.symbol})\n{hit.text}\n\n")


def signature(hit: Hit) -> str:
    """Return the lines of a piece that name what it defines; the first line if it names nothing."""
    lines = [line for line in hit.text.split("\n") if line.strip()]
    names = [re.split(r"\.|::", name)[-1] for name in (hit.symbol or "").split(", ") if name]
    chosen: list[str] = []
    for name in names:
        pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        line = next((line for line in lines if pattern.search(line)), None)
        if line is not None and line[:_LONGEST_LINE] not in chosen:
            chosen.append(line[:_LONGEST_LINE])
    return "\n".join(chosen or [line[:_LONGEST_LINE] for line in lines[:1]])
