"""Answer questions about structure: definition, references, callers, callees and more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from evercontext.index.structure.imports import STAR
from evercontext.index.structure.resolver import (
    CERTAINTIES,
    CLASS_KINDS,
    IMPORTED,
    NAME,
    SAME_FILE,
    TYPE,
    NameTarget,
    Resolver,
)
from evercontext.index.structure.source import (
    BINDING,
    DEFINITION,
    IMPORT,
    MEMBER,
    Mention,
    ParsedSource,
    Symbol,
)
from evercontext.index.structure.source_tree import MOST_FILES, SourceTree

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME_PARTS = re.compile(r"\.|::|(?<=\w)#")
_MOST_LIKELY = 3
"""A name that has more definitions than this says nothing about which is called."""
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One line that answers a question."""

    path: str
    line: int
    kind: str
    """definition, call, reference, import or implementation."""
    symbol: str
    """The definition around it, or the one that it is; empty at the top of a file."""
    text: str
    certainty: str


@dataclass(slots=True)
class StructureAnswer:
    """What a question found."""

    question: str
    name: str
    definitions: list[Symbol] = field(default_factory=list)
    """What the name stands for in this tree."""
    places: list[Occurrence] = field(default_factory=list)
    total: int = 0
    """How many places there are; more than ``places`` where some were left out."""
    outside: list[str] = field(default_factory=list)
    """Names that are called and not defined in this tree, or cannot be told."""
    files_read: int = 0
    note: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the answer as JSON shows it."""
        return {
            "question": self.question,
            "name": self.name,
            "definitions": [symbol_data(symbol) for symbol in self.definitions],
            "results": [asdict(place) for place in self.places],
            "total": self.total,
            "files_read": self.files_read,
            **({"outside": self.outside} if self.outside else {}),
            **({"note": self.note} if self.note else {}),
        }


def symbol_data(symbol: Symbol) -> dict[str, Any]:
    """Return a definition as JSON shows it."""
    return {
        "name": symbol.qualified_name,
        "kind": symbol.kind,
        "path": symbol.path,
        "line": symbol.line,
        "end_line": symbol.end_line,
        "signature": symbol.signature,
    }


class StructureQuestions:
    """Answers over the parsed files of one tree."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.resolver = Resolver(tree)

    def ask(
        self, question: str, name: str, path: str | None = None, limit: int = 50
    ) -> StructureAnswer:
        """Answer one of ``QUESTIONS``; ``path`` narrows which definition is meant."""
        name = name.strip()
        answer = StructureAnswer(question, name)
        _ANSWERS[question](self, answer, path)
        answer.places = _ordered(answer.places)
        answer.total = len(answer.places)
        answer.places = answer.places[:limit]
        answer.files_read = len(self.tree.files_read)
        if self.tree.is_exhausted:
            answer.note = f"only {MOST_FILES:,} files were read: there may be more"
        return answer

    # definitions

    def definitions(self, name: str, path: str | None = None) -> list[Symbol]:
        """Return the definitions of a name; ``Cart.add`` is the member of a class or module."""
        parts = [part for part in _NAME_PARTS.split(name) if part]
        if not parts:
            return []
        last, qualifier = parts[-1], parts[-2] if len(parts) > 1 else None
        sources = [
            source
            for file in self.tree.paths_defining(last)
            if (source := self.tree.source(file)) is not None
        ]
        matches = self._defined_in(sources, last, qualifier)
        if not matches:
            matches = self._defined_in(list(self.tree.sources_with(last)), last, qualifier)
        if path:
            matches = [
                s for s in matches if s.path == path or s.path.startswith(path.rstrip("/") + "/")
            ]
        return sorted(matches, key=lambda s: (s.is_local, _is_test(s.path), s.path, s.line))

    def _defined_in(
        self, sources: Sequence[ParsedSource], name: str, qualifier: str | None
    ) -> list[Symbol]:
        symbols: dict[tuple[str, int], Symbol] = {}
        for source in sources:
            for mention in source.mentions(name):
                is_field = mention.role == MEMBER and mention.is_assigned
                if mention.role != DEFINITION and not is_field:
                    continue
                symbol = source.symbol(mention)
                if is_field and not symbol.owner:
                    continue
                if qualifier and qualifier not in (symbol.owner, *_module_names(symbol)):
                    continue
                symbols.setdefault((symbol.path, symbol.line), symbol)
        members = {(s.path, s.owner) for s in symbols.values() if s.kind != "field"}
        return [
            s for s in symbols.values() if s.kind != "field" or (s.path, s.owner) not in members
        ]

    def _define(self, answer: StructureAnswer, path: str | None) -> None:
        answer.definitions = self.definitions(answer.name, path)
        for symbol in answer.definitions:
            answer.places.append(_place_of(symbol, "definition", SAME_FILE))

    # mentions

    def _refer(self, answer: StructureAnswer, path: str | None) -> None:
        answer.places = list(self._mentions_of(answer, path, _is_any))

    def _call(self, answer: StructureAnswer, path: str | None) -> None:
        answer.places = list(self._mentions_of(answer, path, _is_call))

    def _mentions_of(
        self, answer: StructureAnswer, path: str | None, fits: Callable[[Mention], bool]
    ) -> Iterator[Occurrence]:
        answer.definitions = self.definitions(answer.name, path)
        last = _last(answer.name)
        if not answer.definitions and path:
            answer.note = f"not defined below {path}"
            return
        if not answer.definitions:
            answer.note = "not defined in this tree: matched by its name alone"
        defined = {(s.path, s.line) for s in answer.definitions}
        for source in self.tree.sources_with(last):
            for name in self._names_in(source, last, answer.definitions):
                for mention in source.mentions(name):
                    if not fits(mention) or (source.path, mention.line) in defined:
                        continue
                    sure = self._certainty(source, mention, answer.definitions)
                    if sure is not None:
                        yield _place(source, mention, sure)

    def _certainty(
        self, source: ParsedSource, mention: Mention, symbols: Sequence[Symbol]
    ) -> str | None:
        if symbols:
            return self.resolver.certainty(source, mention, symbols)
        is_local = mention.role == BINDING or source.local_binding(mention) is not None
        return None if is_local else NAME

    def _names_in(
        self, source: ParsedSource, name: str, symbols: Sequence[Symbol]
    ) -> Iterator[str]:
        """Yield the name, and what a file calls it that imports it under another."""
        yield name
        for imported in self.tree.imports(source.path):
            if imported.name == name and imported.local not in (name, STAR):
                matches = self.resolver.targets(source.path, imported.local) or ()
                if any(NameTarget(s.path, s.name) in matches for s in symbols):
                    yield imported.local

    # callees

    def _called(self, answer: StructureAnswer, path: str | None) -> None:
        answer.definitions = self.definitions(answer.name, path)
        outside: list[str] = []
        for symbol in answer.definitions:
            source = self.tree.source(symbol.path)
            node = _definition_node(source, symbol) if source is not None else None
            if source is None or node is None:
                continue
            for mention in _calls_in(source, node):
                matches, sure = self._definitions_of(source, mention)
                if not matches:
                    outside.append(source.text_of(mention.expression)[:80])
                for callee in matches:
                    answer.places.append(_place_of(callee, "call", sure))
        answer.places = list(dict.fromkeys(answer.places))
        answer.outside = sorted({" ".join(text.split()) for text in outside})

    def _definitions_of(self, source: ParsedSource, mention: Mention) -> tuple[list[Symbol], str]:
        """Return the definitions that a mention may mean, and how sure that is."""
        candidates = self.definitions(source.text_of(mention.node))
        best: dict[str, list[Symbol]] = {}
        for symbol in candidates:
            sure = self.resolver.certainty(source, mention, [symbol])
            if sure is not None:
                best.setdefault(sure, []).append(symbol)
        for sure in CERTAINTIES:
            symbols = best.get(sure, [])
            if symbols and (sure != NAME or len(symbols) <= _MOST_LIKELY):
                return symbols, sure
        return [], NAME

    # importers

    def _import(self, answer: StructureAnswer, path: str | None) -> None:
        files = self._files_of(answer.name, path)
        if not files:
            answer.definitions = self.definitions(answer.name, path)
            places = self._mentions_of(answer, path, lambda mention: mention.role == IMPORT)
            answer.places = list(places)
            return
        modules = self.tree.modules
        for file in files:
            for source in self.tree.sources_with(_module_name(file)):
                for imported in self.tree.imports(source.path):
                    named = modules.submodule(imported, source.path)
                    if source.path != file and file in (
                        named or modules.resolve(imported, source.path)
                    ):
                        text = source.line_text(imported.line)
                        answer.places.append(
                            Occurrence(source.path, imported.line, "import", "", text, IMPORTED)
                        )
        answer.places = list(dict.fromkeys(answer.places))

    def _files_of(self, name: str, path: str | None) -> list[str]:
        """Return the file that a path names, or the files of a dotted module."""
        for candidate in (name.removeprefix("./"), path or ""):
            if candidate in self.tree.modules.paths:
                return [candidate]
        if "." not in name and "/" not in name:
            return []
        tail = name.replace(".", "/")
        ends = (f"{tail}.py", f"{tail}/__init__.py", f"{tail}.java")
        return [p for p in self.tree.paths if p in ends or p.endswith(tuple("/" + e for e in ends))]

    # implementations

    def _implement(self, answer: StructureAnswer, path: str | None) -> None:
        answer.definitions = self.definitions(answer.name, path)
        for symbol in answer.definitions:
            if symbol.kind in CLASS_KINDS:
                answer.places += self._subtypes(symbol, set(), 0)
                answer.places += self._structural(symbol)
            elif symbol.owner:
                answer.places += self._overrides(symbol)
        answer.places = list(dict.fromkeys(answer.places))

    def _subtypes(self, symbol: Symbol, seen: set[NameTarget], depth: int) -> Iterator[Occurrence]:
        for source in self.tree.sources_with(symbol.name) if depth <= _DEEPEST else ():
            for mention in source.mentions(symbol.name):
                subtype = self._subtype_at(source, mention)
                if subtype is None or NameTarget(subtype.path, subtype.name) in seen:
                    continue
                sure = self.resolver.certainty(source, mention, [symbol])
                if sure is None:
                    continue
                seen.add(NameTarget(subtype.path, subtype.name))
                yield _place_of(subtype, "implementation", sure)
                yield from self._subtypes(subtype, seen, depth + 1)

    def _subtype_at(self, source: ParsedSource, mention: Mention) -> Symbol | None:
        """Return the type whose supertype a mention names."""
        around = mention.node.parent if mention.is_base else None
        while around is not None and around.type not in source.syntax.classes:
            around = around.parent
        if around is None:
            return None
        field_name = "type" if around.type == "impl_item" else "name"
        named = around.child_by_field_name(field_name)
        if named is None:
            return None
        mention = Mention(named, DEFINITION, named, definition=around)
        symbol = source.symbol(mention)
        name = source.name_of_class(around)
        return Symbol(
            name, name, symbol.kind, symbol.path, symbol.line, symbol.end_line, symbol.signature
        )

    def _overrides(self, symbol: Symbol) -> Iterator[Occurrence]:
        owners = [s for s in self.definitions(symbol.owner or "") if s.path == symbol.path]
        subtypes: set[NameTarget] = set()
        for owner in owners:
            list(self._subtypes(owner, subtypes, 0))
            subtypes |= {NameTarget(p.path, p.symbol) for p in self._structural(owner)}
        for other in self.definitions(symbol.name):
            if NameTarget(other.path, other.owner) in subtypes:
                yield _place_of(other, "implementation", TYPE)

    def _structural(self, symbol: Symbol) -> Iterator[Occurrence]:
        """Yield the Go types that have every method of an interface."""
        source = self.tree.source(symbol.path)
        node = _definition_node(source, symbol) if source is not None else None
        body = node.child_by_field_name("type") if node is not None else None
        if source is None or body is None or body.type != "interface_type":
            return
        methods = [
            source.text_of(child.child_by_field_name("name"))  # type: ignore[arg-type]
            for child in body.named_children
            if child.type == "method_elem"
        ]
        owners: set[NameTarget] | None = None
        for method in methods:
            having = {
                NameTarget(s.path.rpartition("/")[0], s.owner)
                for s in self.definitions(method)
                if s.kind == "method" and s.path.endswith(".go") and s.owner != symbol.name
            }
            owners = having if owners is None else owners & having
        for owner in sorted(owners or (), key=lambda t: (t.path, t.name or "")):
            for candidate in self.definitions(owner.name or ""):
                if candidate.path.rpartition("/")[0] == owner.path and not candidate.owner:
                    yield _place_of(candidate, "implementation", NAME)


def _definition_node(source: ParsedSource, symbol: Symbol) -> Node | None:
    for mention in source.mentions(symbol.name):
        if mention.role == DEFINITION and mention.line == symbol.line:
            return mention.definition
    return None


def _calls_in(source: ParsedSource, node: Node) -> Iterator[Mention]:
    """Yield the calls inside a definition, in order."""
    for name_node in _callee_names(source, node):
        for mention in source.mentions(source.text_of(name_node)):
            if mention.node == name_node and mention.is_call:
                yield mention


def _callee_names(source: ParsedSource, node: Node) -> Iterator[Node]:
    for child in node.named_children:
        field_name = source.syntax.calls.get(child.type)
        callee = child.child_by_field_name(field_name) if field_name else None
        while (
            callee is not None and callee.type in source.syntax.wrappers and callee.named_children
        ):
            callee = callee.named_children[0]
        if callee is not None:
            fields = source.syntax.members.get(callee.type)
            inner = callee.child_by_field_name(fields[1]) if fields and fields[1] else callee
            if inner is not None and inner.child_count == 0:
                yield inner
        yield from _callee_names(source, child)


def _is_any(mention: Mention) -> bool:
    return mention.role != BINDING and mention.definition is None


def _is_call(mention: Mention) -> bool:
    return mention.is_call


def _last(name: str) -> str:
    return _NAME_PARTS.split(name)[-1]


def _module_name(path: str) -> str:
    """Return the word by which imports name a file: its stem, or its folder's name."""
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    if path.endswith(".go") or stem in ("__init__", "index", "mod", "lib", "main"):
        return folders[-1] if folders else stem
    return stem


def _module_names(symbol: Symbol) -> tuple[str, ...]:
    """Return what may stand before the name of a symbol at the top of a file."""
    return () if symbol.owner else (_module_name(symbol.path),)


def _is_test(path: str) -> bool:
    return (
        re.search(r"(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|/)test_|[._]test\.", path)
        is not None
    )


def _place(source: ParsedSource, mention: Mention, certainty: str) -> Occurrence:
    kind = "import" if mention.role == IMPORT else "call" if mention.is_call else "reference"
    if mention.is_base:
        kind = "implementation"
    return Occurrence(
        source.path,
        mention.line,
        kind,
        source.enclosing(mention.node),
        source.line_text(mention.line),
        certainty,
    )


def _place_of(symbol: Symbol, kind: str, certainty: str) -> Occurrence:
    return Occurrence(
        symbol.path, symbol.line, kind, symbol.qualified_name, symbol.signature, certainty
    )


def _ordered(places: Sequence[Occurrence]) -> list[Occurrence]:
    rank = {certainty: number for number, certainty in enumerate(CERTAINTIES)}
    return sorted(
        dict.fromkeys(places), key=lambda p: (rank[p.certainty], _is_test(p.path), p.path, p.line)
    )


_ANSWERS: dict[str, Callable[[StructureQuestions, StructureAnswer, str | None], None]] = {
    "definition": StructureQuestions._define,
    "references": StructureQuestions._refer,
    "callers": StructureQuestions._call,
    "callees": StructureQuestions._called,
    "importers": StructureQuestions._import,
    "implementations": StructureQuestions._implement,
}
QUESTIONS = tuple(_ANSWERS)
