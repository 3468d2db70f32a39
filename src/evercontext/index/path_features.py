"""Compute what a path says about a file: its words, and its prior."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from evercontext.index.languages import DATA, PROSE, language_of
from evercontext.retrieval.terms import runs, split_identifier, stem, terms_of

_TEST_FILE = re.compile(
    r"(^|[/_.-])(tests?|specs?|conftest|fixtures?)[_.-][^/]*$|[_.-](tests?|specs?|unittest)\.[^/]*$"
    r"|(Tests?|TestCase|Specs?|Suite|IT)\.(java|kt|kts|scala|swift|cs|php|groovy|ts|js|hs|m)$"
)
_TEST_DIRECTORY = re.compile(
    r"(^|/)(tests?|__tests__|specs?|testing|testdata|test[-_]?utils?|test[-_]fixtures?|fixtures|"
    r"e2e|mocks?|__mocks__|[A-Za-z]*Tests|(common|jvm|js|native|android|ios|desktop)Test)(/|$)"
)
_EXAMPLE = re.compile(
    r"(^|/)(_?examples?|samples?|demos?|docs?|docs?[-_]src|documentation|website|www|tutorials?|"
    r"playgrounds?|snippets|benchmarks?|bench|perf|scripts?|tools?|ci|www)(/|$)",
    re.I,
)
_COMPAT = re.compile(
    r"(^|/|_|\.)(_?compat(ibility)?|legacy|deprecated|shims?|polyfills?|v1|old)(/|_|\.|$)"
)
_GENERATED = re.compile(
    r"(^|/)(vendor|vendored|third[-_]party|node_modules|dist|build|generated|gen|out|target|"
    r"deps|external|bundled|single_include)(/|$)|\.(min|generated|pb|g)\.[a-z]+$|_pb2\.py$"
)
_REEXPORT = frozenset({"__init__", "index", "mod", "lib", "package-info", "main", "init", "all"})


@dataclass(frozen=True, slots=True)
class PathWords:
    """What a question is compared with: the words of a file's name and of its folder."""

    stem: str
    stem_term: str
    """The stem as one term."""
    stem_words: tuple[str, ...]
    """Parts of the stem, lower-cased and not stemmed."""
    parent_terms: tuple[str, ...]
    parts: frozenset[str]
    """All of them."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Words and priors of one path."""

    words: PathWords
    stem_terms: tuple[str, ...]
    directory_terms: tuple[str, ...]
    depth: int
    test: bool
    example: bool
    compat: bool
    generated: bool
    reexport: bool
    underscore: bool
    prose: bool
    data: bool


def _name(path: str) -> str:
    """Return the name of a file without its kind."""
    name = path.rpartition("/")[2].lstrip(".")
    return name.rpartition(".")[0] or name


@lru_cache(maxsize=100_000)
def words_of(path: str) -> PathWords:
    """Return the words of a path: every candidate needs them, and nothing else of its path."""
    words = tuple(split_identifier(_name(path)))
    stem_ = "".join(words)
    parent = path.rpartition("/")[0].rpartition("/")[2]
    terms = tuple(stem(word) for word in split_identifier(parent))
    return PathWords(stem_, stem(stem_), words, terms, frozenset((*words, stem_, *terms)))


@lru_cache(maxsize=100_000)
def facts_of(path: str) -> PathFacts:
    """Return what the path says."""
    pure = PurePosixPath(path)
    name = _name(path)
    parents = pure.parts[:-1]
    language = language_of(path) or "text"
    return PathFacts(
        words=words_of(path),
        stem_terms=tuple(dict.fromkeys(t for run in runs(name) for t in terms_of(run))),
        directory_terms=tuple(stem(w) for part in parents for w in split_identifier(part)),
        depth=len(parents),
        test=bool(_TEST_FILE.search(path) or _TEST_DIRECTORY.search(path)),
        example=bool(_EXAMPLE.search(str(pure.parent) + "/")) if parents else False,
        compat=bool(_COMPAT.search(path)),
        generated=bool(_GENERATED.search(path)),
        reexport=name.lower() in _REEXPORT,
        underscore=name.startswith("_") and not name.startswith("__"),
        prose=language in PROSE,
        data=language in DATA,
    )
