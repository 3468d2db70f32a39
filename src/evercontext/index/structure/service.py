"""Ask an index about structure: bring it up to date, then answer off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from evercontext.errors import NotFound
from evercontext.files.absolute_paths import relative_path, relative_prefix
from evercontext.files.path_names import parse
from evercontext.index.answer_json import incomplete
from evercontext.index.structure.outline import outline
from evercontext.index.structure.questions import StructureAnswer, StructureQuestions
from evercontext.index.structure.repository_map import BUDGET, Count, RepositoryMap, draw_map
from evercontext.index.structure.source import Symbol
from evercontext.index.structure.source_tree import SourceTree
from evercontext.process.worker_threads import think

if TYPE_CHECKING:
    from evercontext.index.code_search import CodeIndex
    from evercontext.index.corpus import Corpus
    from evercontext.index.indexer import Progress

T = TypeVar("T")
LIMIT = 50
"""Results that are shown, if nobody says otherwise."""
MOST_RESULTS = 1_000
PATIENCE = 10.0
"""Seconds that a question waits for the index it began to build."""
_WORK = 10_000_000
"""More than any event loop should wait for."""


async def ask_structure(
    index: CodeIndex,
    question: str,
    name: str,
    path: str | None = None,
    *,
    limit: int = LIMIT,
    patience: float = PATIENCE,
    progress: Progress | None = None,
) -> StructureAnswer:
    """Answer one of ``QUESTIONS`` about a name; files may be named absolutely."""
    root = index.root_path
    name, path = relative_path(name, root), path and relative_path(path, root)

    def answer(tree: SourceTree, corpus: Corpus) -> StructureAnswer:
        return StructureQuestions(tree).ask(question, name, path, limit)

    answered = await _look(index, answer, patience, progress)
    lacks = incomplete(index.coverage()).strip()
    answered.note = " · ".join(filter(None, [answered.note, lacks])) or None
    return answered


async def outline_file(
    index: CodeIndex,
    path: str,
    *,
    patience: float = PATIENCE,
    progress: Progress | None = None,
) -> list[Symbol]:
    """Return the definitions of one file."""
    place = "/".join(parse(relative_path(path, index.root_path)))

    def answer(tree: SourceTree, corpus: Corpus) -> list[Symbol]:
        source = tree.source(place)
        if source is None:
            raise NotFound(
                f"{path}: no file with a structure here",
                fix="Name a Python, TypeScript, JavaScript, Go, Rust or Java file of the project",
            )
        return outline(source)

    return await _look(index, answer, patience, progress)


async def map_repository(
    index: CodeIndex,
    count: Count,
    budget: int = BUDGET,
    prefix: str = "",
    *,
    patience: float = PATIENCE,
    progress: Progress | None = None,
) -> RepositoryMap:
    """Return the most used definitions of the tree within a number of tokens."""

    def answer(tree: SourceTree, corpus: Corpus) -> RepositoryMap:
        return draw_map(tree, corpus, count, budget, relative_prefix(prefix, index.root_path))

    return await _look(index, answer, patience, progress)


async def _look(
    index: CodeIndex,
    answer: Callable[[SourceTree, Corpus], T],
    patience: float,
    progress: Progress | None,
) -> T:
    await _catch_up(index, patience, progress)
    async with index.corpus() as corpus:
        tree = SourceTree(corpus, index.indexer.reader)
        return await think(_WORK, answer, tree, corpus)


async def _catch_up(index: CodeIndex, patience: float, progress: Progress | None) -> None:
    """Wait a little for an index that is missing or far behind."""
    async with index.corpus():
        pass
    if index.unknown and (update := index.catch_up(progress)) is not None:
        await asyncio.wait({update}, timeout=patience)
