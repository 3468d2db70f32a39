"""Split a long question into its core and the names in the rest.

The text of an issue, a stack trace or the output of a failing test is a question whose first line
says what is meant. What follows is no prose to be searched for word by word: it names paths, frames
and identifiers, among much that only happens to be there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from evercontext.index.languages import language_of
from evercontext.retrieval.terms import (
    GENERIC_WEIGHT,
    GENERIC_WORDS,
    STOP_WORDS,
    fold,
    runs,
    terms_of,
)

_LONGEST_HEAD = 300
"""A text of so many characters on one line is one question; of a longer one, the first sentence."""
_MOST_NAMES = 300
_MOST_PATHS = 60
_MOST_LINES = 50
"""Lines that are named with one path."""
_SENTENCE_END = re.compile(r"[.?!](?=\s)|[。？！]")
_DECORATION = re.compile(r"^(?:#{1,6}\s+|[>*\-]\s+)+")
_TRACE = re.compile(r"^\s*Traceback \(most recent call last\)")
_ERROR = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Failure|Exit|Interrupt)\b.*", re.A)
# Every pattern begins where a word begins, and no repetition stands inside another: a text of one
# endless word takes as long as any other.
_PATH = re.compile(
    r"(?<![\w./\\@+~-])[\w.@+~-]*(?:[/\\]+[\w.@+~-]+)+|(?<![\w./\\-])[\w-]+\.\w{1,8}\b"
)
_LINE = re.compile(r"(?:\"?, line |:|\(|#L)(\d{1,7})(?!\d)", re.A)
_NAME = re.compile(r"(?<![\w$])[A-Za-z_$][\w$]*", re.A)
_SHAPED = re.compile(r".[A-Z_$]|^_|[A-Za-z]\d", re.A)
_BEFORE = frozenset("`.#>:$@")
_AFTER = frozenset("`(:")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Details:
    """What the rest of a long question names."""

    terms: dict[str, float] = field(default_factory=dict)
    """Its words, by how often they are there."""
    names: dict[str, float] = field(default_factory=dict)
    """What may be an identifier; whether it is one, the tree says."""
    paths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Paths and file names, with ``/``, as written, and the lines that are named with each."""


def split(text: str) -> tuple[str, str]:
    """Return what is meant, and the rest: the first line or sentence of a text, and all else."""
    text = text.strip()
    head, _, rest = text.partition("\n")
    if _TRACE.match(head):
        return _split_at_error(text)
    while rest[:1].islower() and len(head) < _LONGEST_HEAD:
        # A sentence that was wrapped.
        more, _, rest = rest.partition("\n")
        head = f"{head.rstrip()} {more}"
    if len(head) > _LONGEST_HEAD:
        end = _SENTENCE_END.search(head, 0, _LONGEST_HEAD)
        cut = end.end() if end else head.rfind(" ", 0, _LONGEST_HEAD)
        cut = cut if cut > 0 else _LONGEST_HEAD
        head, rest = head[:cut], f"{head[cut:]}\n{rest}"
    return _DECORATION.sub("", head.strip()), rest


def _split_at_error(trace: str) -> tuple[str, str]:
    """A trace means its error, which stands below the frames."""
    for line in trace.split("\n"):
        if _ERROR.match(line):
            return line[:_LONGEST_HEAD], trace
    head, _, rest = trace.partition("\n")
    return head[:_LONGEST_HEAD], rest


def read_details(text: str) -> Details:
    """Return what a text names."""
    folded = fold(text)
    words = Counter(runs(folded))
    terms: dict[str, float] = {}
    for word, times in words.items():
        lower = word.lower()
        if lower in STOP_WORDS:
            continue
        weight = (GENERIC_WEIGHT if lower in GENERIC_WORDS else 1.0) * (1.0 + math.log(times))
        for term in terms_of(word):
            terms[term] = max(terms.get(term, 0.0), weight)
    return Details(terms, _names(folded), _paths(folded))


def _names(text: str) -> dict[str, float]:
    """Return what is written like an identifier, by how often it is there."""
    often: Counter[str] = Counter()
    for match in _NAME.finditer(text):
        name, first, last = match[0], match.start(), match.end()
        if not 2 < len(name) <= _LONGEST_NAME:
            continue
        beside = text[first - 1 : first] in _BEFORE or text[last : last + 1] in _AFTER
        if (first and beside) or _SHAPED.search(name):
            often[name] += 1
    common = often.most_common(_MOST_NAMES)
    return {name: 1.0 + math.log(times) for name, times in common}


def _paths(text: str) -> dict[str, tuple[int, ...]]:
    lines: dict[str, set[int]] = {}
    for match in _PATH.finditer(text):
        path = match[0].replace("\\", "/").strip("./~")
        if language_of(path) is None or (path not in lines and len(lines) >= _MOST_PATHS):
            continue
        named = lines.setdefault(path, set())
        line = _LINE.match(text, match.end())
        if line and len(named) < _MOST_LINES:
            named.add(int(line[1]))
    return {path: tuple(sorted(named)) for path, named in lines.items()}
