"""Draw a map of a repository that fits a budget of tokens: its most used definitions, by file.

How much a definition matters is read from the index: how many other files mention its name, shared
among the files that define it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evercontext.index.corpus import Corpus
from evercontext.index.structure.outline import outline
from evercontext.index.structure.source import Symbol, is_supported
from evercontext.index.structure.source_tree import SourceTree
from evercontext.retrieval.terms import identifier_term

Count = Callable[[str], int]
"""Returns the tokens of a text."""
BUDGET = 2_000
"""Tokens of a map, if nobody says otherwise."""
_LONGEST = 120
"""Characters of one line of the map."""
_TOKENS_PER_FILE = 20
"""A map has room for about so many files: budget divided by this."""
_MOST_FILES = 300
_KIND_WEIGHTS = {"method": 0.5, "field": 0.15, "value": 0.3}
_SIDE_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|examples?|docs?|benchmarks?|fixtures?|vendor)/"
    r"|(?:^|/)(?:test_|conftest)|[._](?:test|spec)\."
)
_SIDE_WEIGHT = 0.1


@dataclass(slots=True)
class RepositoryMap:
    """Definitions of a tree, as many as fit."""

    text: str
    tokens: int
    files: int
    """Files that the map shows."""
    symbols: int
    total_files: int
    """Files of the tree that have a structure."""
    left_out: int = 0
    """Definitions for which there was no room in the files that are shown."""
    left_out_files: int = 0
    """Files for which there was no room; what defines nothing is not missed."""
    lines: list[Symbol] = field(default_factory=list)

    @property
    def note(self) -> str:
        """Say what a larger budget would show, too; nothing where all is shown."""
        parts = [f"{self.left_out:,} more definitions of these files"] if self.left_out else []
        if self.left_out_files:
            parts.append(f"{self.left_out_files:,} of {self.total_files:,} files")
        return f"(a larger budget shows {' and '.join(parts)}, too)" if parts else ""


def draw_map(
    tree: SourceTree, corpus: Corpus, count: Count, budget: int = BUDGET, prefix: str = ""
) -> RepositoryMap:
    """Return the map of the files below a prefix within a number of tokens."""
    paths = [path for path in tree.paths if path.startswith(prefix)]
    ranked = _ranked_files(corpus, prefix)
    candidates: list[tuple[float, Symbol]] = []
    most = min(_MOST_FILES, max(4, budget // _TOKENS_PER_FILE))
    for path in ranked[:most]:
        source = tree.source(path)
        for symbol in outline(source) if source is not None else ():
            weight = _weight(corpus, symbol)
            if weight > 0:
                candidates.append((weight, symbol))
    candidates.sort(key=lambda item: (-item[0], item[1].path, item[1].line))
    chosen = _fitting([symbol for _, symbol in candidates], count, budget)
    order = {path: number for number, path in enumerate(ranked)}
    chosen.sort(key=lambda symbol: (order[symbol.path], symbol.line))
    text = _drawn(chosen)
    shown = {symbol.path for symbol in chosen}
    left_out = max(0, sum(symbol.path in shown for _, symbol in candidates) - len(chosen))
    hidden = {symbol.path for _, symbol in candidates} - shown
    left_out_files = len(hidden) + len(ranked[most:])
    return RepositoryMap(
        text, count(text), len(shown), len(chosen), len(paths), left_out, left_out_files, chosen
    )


def _ranked_files(corpus: Corpus, prefix: str) -> list[str]:
    """Return the files of a tree, those first whose definitions are used most elsewhere."""
    frequency, definers = corpus.values("frequency"), corpus.values("definers")
    scores: dict[str, float] = {}
    for slot in np.flatnonzero(corpus.alive).tolist():
        path = corpus.path(slot)
        if not path.startswith(prefix) or not is_supported(path):
            continue
        names = np.unique(corpus.names_of(slot))
        uses = np.maximum(frequency[names] - definers[names], 0) / np.maximum(definers[names], 1)
        scores[path] = float(np.log1p(uses).sum()) * _path_weight(path)
    return sorted(scores, key=lambda path: (-scores[path], path))


def _path_weight(path: str) -> float:
    return _SIDE_WEIGHT if _SIDE_PATH.search(path) else 1.0


def _weight(corpus: Corpus, symbol: Symbol) -> float:
    number = corpus.term(identifier_term(symbol.name))
    if number is None:
        return 0.0
    definers = max(1, int(corpus.values("definers")[number]))
    uses = max(0, int(corpus.values("frequency")[number]) - definers) / definers
    hidden = 0.2 if symbol.name.startswith("_") else 1.0
    kind = _KIND_WEIGHTS.get(symbol.kind, 1.0)
    return (0.05 + math.log1p(uses)) * kind * hidden * _path_weight(symbol.path)


def _fitting(symbols: list[Symbol], count: Count, budget: int) -> list[Symbol]:
    """Return as many symbols as a budget has room for, each with its file and its class."""
    left = budget
    chosen: dict[tuple[str, int], Symbol] = {}
    shown_files: set[str] = set()
    classes = {(s.path, s.name): s for s in symbols if s.owner is None}
    misses = 0
    for symbol in symbols:
        entries = [symbol]
        owner = classes.get((symbol.path, symbol.owner or ""))
        if owner is not None:
            entries.append(owner)
        entries = [s for s in entries if (s.path, s.line) not in chosen]
        price = sum(count(_line(s)) + 1 for s in entries)
        if symbol.path not in shown_files:
            price += count(symbol.path) + 1
        if price > left:
            misses += 1
            # What is left is too little for nearly every line.
            if misses > 20:
                break
            continue
        left -= price
        shown_files.add(symbol.path)
        chosen.update({(s.path, s.line): s for s in entries})
    return list(chosen.values())


def _line(symbol: Symbol) -> str:
    indent = "    " if symbol.owner else "  "
    return f"{indent}{symbol.line}: {symbol.signature}"[:_LONGEST]


def _drawn(symbols: list[Symbol]) -> str:
    files: dict[str, list[str]] = defaultdict(list)
    for symbol in symbols:
        files[symbol.path].append(_line(symbol))
    return "\n".join("\n".join((path, *lines)) for path, lines in files.items())
