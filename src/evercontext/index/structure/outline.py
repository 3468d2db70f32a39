"""List the definitions of one file, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evercontext.index.structure.source import DEFINITION, ParsedSource, Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

_NO_DEFINITIONS = frozenset({"arguments", "argument_list", "string", "comment", "object"})


def outline(source: ParsedSource) -> list[Symbol]:
    """Return the definitions of a file, in order, those inside functions left out."""
    symbols: dict[tuple[int, str], Symbol] = {}
    for name_node in _definition_names(source, source.root):
        name = source.text_of(name_node)
        for mention in source.mentions(name):
            if mention.node == name_node and mention.role == DEFINITION:
                symbol = source.symbol(mention)
                if not symbol.is_local:
                    symbols.setdefault((symbol.line, symbol.qualified_name), symbol)
    return sorted(symbols.values(), key=lambda s: (s.line, -s.end_line))


def _definition_names(source: ParsedSource, node: Node) -> Iterator[Node]:
    """Yield the names of definitions outside of functions."""
    for child in node.named_children:
        if child.type in source.syntax.definitions:
            yield from child.children_by_field_name("name")
        elif child.type == "assignment":
            left = child.child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield left
        if child.type not in source.syntax.functions and child.type not in _NO_DEFINITIONS:
            yield from _definition_names(source, child)
