"""Tell the type of the object that a member is taken from, as far as the file says it.

Declared types and constructor calls of the same function, class or file are read; nothing is
computed across files. What is not written down stays unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evercontext.index.structure.source import (
    BINDING,
    DEFINITION,
    MEMBER,
    Mention,
    ParsedSource,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 3
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*|[\[\]<>|,()]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRANSPARENT = _words(
    "Optional Union Annotated Final ClassVar Type type Required NotRequired Readonly"
    " Partial Promise Awaitable Box Rc Arc Option Result RefCell Mutex RwLock Ref RefMut"
)
_NO_TYPES = _words(
    "None null undefined mut dyn const readonly impl ref void extends super unknown any"
    " Any object Object"
)
BUILT_IN = _words(
    "str int float bool bytes list dict set tuple frozenset string number boolean Array"
    " Map Set Record String Vec HashMap HashSet List error byte rune usize u8 u32 u64 i32"
    " i64"
)
"""Types that no tree defines and no file imports."""
_LITERALS = {
    "list": "list",
    "list_comprehension": "list",
    "dictionary": "dict",
    "dictionary_comprehension": "dict",
    "set": "set",
    "tuple": "tuple",
    "string": "string",
    "template_string": "string",
    "array": "Array",
    "integer": "int",
    "string_literal": "String",
}
_UNWRAPPED = _words(
    "await await_expression parenthesized_expression non_null_expression try_expression"
    " reference_expression unary_expression as_expression satisfies_expression"
    " expression_list type_conversion_expression"
)
_CONSTRUCTIONS = {
    "call": "function",
    "call_expression": "function",
    "new_expression": "constructor",
    "object_creation_expression": "type",
    "composite_literal": "type",
    "struct_expression": "name",
}


def type_names(text: str) -> tuple[str, ...]:
    """Return the types that a written type allows at its top, as written: ``Cart | None``, Cart."""
    names: list[str] = []
    stack: list[bool] = [True]
    last_transparent = False
    for word in _TOKEN.findall(text.replace('"', " ").replace("'", " ")):
        if word in "[<(":
            stack.append(stack[-1] and last_transparent)
            last_transparent = False
        elif word in "]>)":
            if len(stack) > 1:
                stack.pop()
        elif word not in "|,":
            last_transparent = re.split(r"\.|::", word)[-1] in _TRANSPARENT
            if stack[-1] and not last_transparent and word not in _NO_TYPES:
                names.append(word)
    return tuple(dict.fromkeys(names))


def type_of(source: ParsedSource, node: Node, depth: int = 0) -> tuple[str, ...]:
    """Return the names of the types that an expression may have; nothing if it is not written."""
    if depth > _DEEPEST:
        return ()
    if node.type in _UNWRAPPED and node.named_children:
        return type_of(source, node.named_children[0], depth + 1)
    if node.type in ("identifier", "this", "self"):
        return _type_of_name(source, node, depth)
    if node.type in _LITERALS:
        return (_LITERALS[node.type],)
    if node.type in _CONSTRUCTIONS:
        return _constructed(source, node, depth)
    fields = source.syntax.members.get(node.type)
    if fields is not None and fields[0]:
        receiver = node.child_by_field_name(fields[0])
        name = node.child_by_field_name(fields[1])
        if receiver is not None and name is not None and _is_own(source, receiver, node):
            return _type_of_attribute(source, node, source.text_of(name), depth)
    return ()


def _is_own(source: ParsedSource, receiver: Node, node: Node) -> bool:
    if source.text_of(receiver) in source.syntax.own:
        return True
    return source.text_of(receiver) == _go_receiver(source, node)


def _go_receiver(source: ParsedSource, node: Node) -> str:
    """Return what a Go method calls its own object."""
    ancestor: Node | None = node
    while ancestor is not None:
        if ancestor.type == "method_declaration":
            receiver = ancestor.child_by_field_name("receiver")
            names = re.findall(r"\w+", source.text_of(receiver)) if receiver is not None else []
            return names[0] if len(names) > 1 else ""
        ancestor = ancestor.parent
    return ""


def _type_of_name(source: ParsedSource, node: Node, depth: int) -> tuple[str, ...]:
    name = source.text_of(node)
    own = next((m for m in source.mentions(name) if m.node == node), None)
    binding = source.local_binding(own) if own is not None else None
    if binding is not None:
        scope = source.scope_of(binding.node)
        same = [
            mention
            for mention in source.mentions(name)
            if mention.role == BINDING and source.scope_of(mention.node) == scope
        ]
        return _declared(source, same or [binding], depth)
    top = [m for m in source.mentions(name) if m.role == DEFINITION and not source.scopes(m)]
    values = [m for m in top if source.symbol(m).kind in ("value", "field")]
    return _declared(source, values, depth)


def _type_of_attribute(source: ParsedSource, node: Node, name: str, depth: int) -> tuple[str, ...]:
    around = source.class_around(node)
    if around is None:
        return ()
    owner = source.name_of_class(around)
    mentions = [
        m
        for m in source.mentions(name)
        if (m.role == DEFINITION or (m.role == MEMBER and m.is_assigned))
        and source.owner_of(m) == owner
    ]
    mentions += [m for m in source.mentions(name) if m.role == BINDING and _is_field(m)]
    return _declared(source, mentions, depth)


def _is_field(mention: Mention) -> bool:
    """True for a parameter of a TypeScript constructor that declares a field."""
    parent = mention.node.parent
    return parent is not None and any(c.type == "accessibility_modifier" for c in parent.children)


def _declared(source: ParsedSource, mentions: list[Mention], depth: int) -> tuple[str, ...]:
    """Return the types that some bindings of a name are given."""
    names: list[str] = []
    for mention in mentions:
        names += _declared_at(source, mention.expression, depth)
    return tuple(dict.fromkeys(names))


def _declared_at(source: ParsedSource, node: Node, depth: int) -> tuple[str, ...]:
    ancestor = node.parent
    for _ in range(4):
        if ancestor is None or ancestor.type in source.syntax.functions:
            return ()
        for field in ("type", "return_type"):
            written = ancestor.child_by_field_name(field)
            if written is not None and written != node:
                names = type_names(source.text_of(written).lstrip(": "))
                if names:
                    return names
        for field in ("right", "value"):
            value = ancestor.child_by_field_name(field)
            if value is not None and value != node and not _is_loop(ancestor):
                return type_of(source, value, depth + 1)
        if ancestor.type == "as_pattern" and ancestor.named_children:
            return type_of(source, ancestor.named_children[0], depth + 1)
        if ancestor.type in ("block", "statement_block", "module", "program"):
            return ()
        ancestor = ancestor.parent
    return ()


def _is_loop(node: Node) -> bool:
    return node.type in (
        "for_statement",
        "for_in_clause",
        "for_in_statement",
        "range_clause",
        "for_expression",
        "enhanced_for_statement",
        "augmented_assignment",
    )


def _constructed(source: ParsedSource, node: Node, depth: int) -> tuple[str, ...]:
    callee = node.child_by_field_name(_CONSTRUCTIONS[node.type])
    if callee is None:
        return ()
    text = source.text_of(callee)
    if node.type not in ("call", "call_expression"):
        return type_names(text)[:1]
    text = re.sub(r"<.*?>", "", text)
    if not re.fullmatch(r"[\w$.:]+", text):
        return ()
    if text in BUILT_IN:
        return (text,)
    parts = re.split(r"(\.|::)", text)
    for size in (len(parts), len(parts) - 2):
        # A class by its capital; a factory such as Cart.load or Cart::new by the class before it.
        if size > 0 and parts[size - 1].lstrip("_")[:1].isupper():
            return ("".join(parts[:size]),)
    return _returned(source, text, depth)


def _returned(source: ParsedSource, name: str, depth: int) -> tuple[str, ...]:
    """Return the declared result of a function of the same file."""
    for mention in source.mentions(name) if name.isidentifier() else ():
        if mention.role == DEFINITION and mention.definition is not None:
            written = mention.definition.child_by_field_name("return_type")
            if written is not None:
                return type_names(source.text_of(written).lstrip(":-> "))
    return ()
