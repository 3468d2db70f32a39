"""Find and parse the files of a tree that a question about structure needs.

The index says which files hold a name at all; only those are read and parsed, as they are on disk
now. Nothing is stored: a parse takes less than a millisecond for an ordinary file, and storing what
it finds for every file would make the index half as expensive again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from evercontext.index.corpus import Corpus
from evercontext.index.source_reader import Reader, Unfit
from evercontext.index.structure.imports import Import, imports_of
from evercontext.index.structure.module_paths import ModulePaths
from evercontext.index.structure.source import ParsedSource, is_supported
from evercontext.retrieval.terms import identifier_term

MOST_FILES = 3_000
"""Files that are read for one question."""
_MOST_PARSED = 400
"""Parsed files that are kept while a question is answered."""


class SourceTree:
    """The parsed files of one tree, for one question."""

    def __init__(self, corpus: Corpus, reader: Reader) -> None:
        self._corpus = corpus
        self._reader = reader
        self._sources: OrderedDict[str, ParsedSource | None] = OrderedDict()
        self._texts: dict[str, str | None] = {}
        self._imports: dict[str, tuple[Import, ...]] = {}
        self.files_read: set[str] = set()

    @cached_property
    def paths(self) -> list[str]:
        """Every indexed file whose language has structure."""
        alive = self._corpus.alive.tolist()
        paths = self._corpus.paths()
        return [
            path for path, lives in zip(paths, alive, strict=True) if lives and is_supported(path)
        ]

    @cached_property
    def modules(self) -> ModulePaths:
        """The files by the modules that they are."""
        return ModulePaths(self.paths)

    @property
    def is_exhausted(self) -> bool:
        """True if as many files were read as one question may read."""
        return len(self.files_read) >= MOST_FILES

    def source(self, path: str) -> ParsedSource | None:
        """Return a file parsed; ``None`` if it cannot be read or has no structure."""
        if path in self._sources:
            self._sources.move_to_end(path)
            return self._sources[path]
        text = self._text(path)
        source = ParsedSource(path, text) if text is not None else None
        self._sources[path] = source
        while len(self._sources) > _MOST_PARSED:
            self._sources.popitem(last=False)
        return source

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        if not is_supported(path) or (self.is_exhausted and path not in self.files_read):
            return None
        self.files_read.add(path)
        try:
            return self._reader.read(path).text
        except Unfit:
            return None

    def imports(self, path: str) -> tuple[Import, ...]:
        """Return what a file imports."""
        if path not in self._imports:
            source = self.source(path)
            self._imports[path] = imports_of(source) if source is not None else ()
        return self._imports[path]

    def sources_with(self, name: str) -> Iterator[ParsedSource]:
        """Yield the files in which a name stands, in order of their paths."""
        for path in self.paths_with(name):
            text = self._text(path)
            if text is not None and name in text:
                source = self.source(path)
                if source is not None:
                    yield source

    def paths_with(self, name: str) -> list[str]:
        """Return the files that may hold a name, by the terms of the index."""
        term = identifier_term(name)
        number = self._corpus.term(term) if len(term) > 1 else None
        if number is None:
            # Names of one letter and the like are no terms of the index.
            return self.paths if len(term) <= 1 or not name.isascii() else []
        chunks, _ = self._corpus.body.of(number)
        slots = np.unique(self._corpus.values("chunk_file")[chunks]).tolist()
        return sorted(
            path
            for slot in slots
            if self._corpus.alive[slot] and is_supported(path := self._corpus.path(slot))
        )

    def paths_defining(self, name: str) -> list[str]:
        """Return the files that define a name at all, by the names of the index."""
        slots = set(self._corpus.definers_of(name))
        paths = (self._corpus.path(slot) for slot in slots)
        return sorted(path for path in paths if is_supported(path))
