"""Read the imports of a file: which name it uses for what of which module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from evercontext.index.structure.source import ParsedSource

if TYPE_CHECKING:
    from tree_sitter import Node, Query

STAR = "*"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name."""

    local: str
    """How the file calls it; ``*`` for everything."""
    module: str
    """As it is written: ``..shop.cart``, ``./cart``, ``crate::shop``."""
    name: str | None
    """What of the module; ``None``: the module itself."""
    line: int


_QUERIES = {
    "python": "(import_statement) @i (import_from_statement) @i",
    "typescript": "(import_statement) @i (export_statement source: (_)) @i"
    ' (call_expression function: (identifier) @f (#eq? @f "require")) @i'
    " (call_expression function: (import)) @i",
    "go": "(import_spec) @i",
    "rust": "(use_declaration) @i (mod_item !body) @i",
    "java": "(import_declaration) @i",
}
_QUERY_OF = {"tsx": "typescript", "javascript": "typescript"}


def imports_of(source: ParsedSource) -> tuple[Import, ...]:
    """Return what a file imports, in order."""
    from tree_sitter import QueryCursor

    nodes = QueryCursor(_query(source.language)).captures(source.root).get("i", [])
    read = _READERS[_QUERY_OF.get(source.language, source.language)]
    ordered = sorted(nodes, key=lambda node: node.start_byte)
    return tuple(imported for node in ordered for imported in read(source, node))


@lru_cache(maxsize=16)
def _query(language: str) -> Query:
    from tree_sitter import Query

    from evercontext.index.languages import language_grammar

    return Query(language_grammar(language), _QUERIES[_QUERY_OF.get(language, language)])


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _python(source: ParsedSource, node: Node) -> Iterator[Import]:
    module_node = node.child_by_field_name("module_name")
    module = source.text_of(module_node) if module_node is not None else ""
    for item in node.children_by_field_name("name"):
        name_node, alias = item, None
        if item.type == "aliased_import":
            alias_node = item.child_by_field_name("alias")
            name_node = item.child_by_field_name("name") or item
            alias = source.text_of(alias_node) if alias_node is not None else None
        name = source.text_of(name_node)
        if module_node is None:
            yield Import(alias or name, name, None, _line(item))
        else:
            yield Import(alias or name, module, name, _line(item))
    if any(child.type == "wildcard_import" for child in node.children):
        yield Import(STAR, module, STAR, _line(node))


_QUOTES = "\"'`"


def _script(source: ParsedSource, node: Node) -> Iterator[Import]:
    if node.type == "call_expression":
        yield from _required(source, node)
        return
    from_node = node.child_by_field_name("source")
    if from_node is None:
        return
    module, has_names = source.text_of(from_node).strip(_QUOTES), False
    for child in _below(node, ("import_specifier", "export_specifier")):
        name_node, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
        if name_node is not None:
            name, has_names = source.text_of(name_node), True
            local = source.text_of(alias) if alias is not None else name
            yield Import(local, module, name, _line(child))
    for child in _below(node, ("import_clause",)):
        for inner in child.children:
            if inner.type == "identifier":
                has_names = True
                yield Import(source.text_of(inner), module, "default", _line(inner))
    for child in _below(node, ("namespace_import", "namespace_export")):
        has_names = True
        yield Import(source.text_of(child.named_children[0]), module, None, _line(child))
    if not has_names:
        everything = node.type == "export_statement"
        yield Import(STAR if everything else "", module, STAR if everything else None, _line(node))


def _required(source: ParsedSource, node: Node) -> Iterator[Import]:
    arguments = node.child_by_field_name("arguments")
    first = arguments.named_children[0] if arguments and arguments.named_children else None
    if first is None or first.type != "string":
        return
    module = source.text_of(first).strip(_QUOTES)
    holder = node.parent
    if holder is not None and holder.type == "await_expression":
        holder = holder.parent
    target = holder.child_by_field_name("name") if holder is not None else None
    if target is None or holder is None or holder.type != "variable_declarator":
        yield Import("", module, None, _line(node))
    elif target.type == "identifier":
        yield Import(source.text_of(target), module, None, _line(node))
    else:
        for child in target.named_children:
            if child.type == "shorthand_property_identifier_pattern":
                name = source.text_of(child)
                yield Import(name, module, name, _line(child))
            elif child.type == "pair_pattern" and len(child.named_children) == 2:
                key, value = child.named_children
                yield Import(source.text_of(value), module, source.text_of(key), _line(child))


def _below(node: Node, types: tuple[str, ...]) -> Iterator[Node]:
    for child in node.children:
        if child.type in types:
            yield child
        elif child.named_child_count:
            yield from _below(child, types)


def _go(source: ParsedSource, node: Node) -> Iterator[Import]:
    path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
    if path is None:
        return
    module = source.text_of(path).strip(_QUOTES)
    # A version at the end of a path is no name: example.com/shop/v2 is shop.
    parts = [part for part in module.split("/") if not re.fullmatch(r"v\d+", part)] or [module]
    local = source.text_of(name) if name is not None else parts[-1]
    yield Import(STAR if local == "." else local, module, None, _line(node))


def _rust(source: ParsedSource, node: Node) -> Iterator[Import]:
    if node.type == "mod_item":
        named = node.child_by_field_name("name")
        if named is not None:
            name = source.text_of(named)
            yield Import(name, f"self::{name}", None, _line(node))
        return
    argument = node.child_by_field_name("argument")
    if argument is not None:
        yield from _use(source, argument, "")


def _use(source: ParsedSource, node: Node, prefix: str) -> Iterator[Import]:
    if node.type == "scoped_use_list":
        path, listed = node.child_by_field_name("path"), node.child_by_field_name("list")
        inner = _joined(prefix, source.text_of(path) if path is not None else "")
        for child in listed.named_children if listed is not None else ():
            yield from _use(source, child, inner)
    elif node.type == "use_list":
        for child in node.named_children:
            yield from _use(source, child, prefix)
    elif node.type == "use_wildcard":
        path = node.named_children[0] if node.named_children else None
        module = _joined(prefix, source.text_of(path) if path is not None else "")
        yield Import(STAR, module, STAR, _line(node))
    else:
        target, alias = node, None
        if node.type == "use_as_clause":
            target = node.child_by_field_name("path") or node
            alias = node.child_by_field_name("alias")
        text = _joined(prefix, source.text_of(target))
        module, _, name = text.rpartition("::")
        if name == "self":
            module, _, name = module.rpartition("::")
        local = source.text_of(alias) if alias is not None else name
        yield Import(local, module, name, _line(node))


def _joined(prefix: str, path: str) -> str:
    return f"{prefix}::{path}" if prefix and path else prefix or path


_JAVA_IMPORT = re.compile(r"import\s+(?:static\s+)?([\w.]+?)(?:\s*\.\s*(\*))?\s*;")


def _java(source: ParsedSource, node: Node) -> Iterator[Import]:
    match = _JAVA_IMPORT.match(source.text_of(node))
    if match is None:
        return
    if match[2]:
        yield Import(STAR, match[1], STAR, _line(node))
    else:
        module, _, name = match[1].rpartition(".")
        yield Import(name, module, name, _line(node))


_READERS: dict[str, Callable[[ParsedSource, Node], Iterator[Import]]] = {
    "python": _python,
    "typescript": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
}
