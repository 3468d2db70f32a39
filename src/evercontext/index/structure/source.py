"""Read one parsed file: what each mention of a name is, and what encloses it.

Only the mentions of names that a question is about are looked at: they are found in the bytes, and
the tree is asked for the node at each place. A question costs one parse per file and little else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evercontext.index.languages import language_grammar, language_of
from evercontext.index.structure.syntax import ANY, LOCAL_VALUES, SYNTAXES, Syntax

if TYPE_CHECKING:
    from tree_sitter import Node

DEFINITION, BINDING, IMPORT, MEMBER, PLAIN = "definition", "binding", "import", "member", "plain"
_SIGNATURE = 240
_LINE = 240
_TYPE_CONTEXT = frozenset({"type", "type_annotation"})
_TEXTS = frozenset({"string_content", "string", "string_fragment"})
_STATEMENTS = 8
"""Nodes that may lie between a name and the statement it stands in."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where a name stands."""

    node: Node
    role: str
    expression: Node
    """The name with what it is taken from: ``a.b`` of ``b``."""
    receiver: Node | None = None
    is_call: bool = False
    is_base: bool = False
    """True if it names a supertype."""
    definition: Node | None = None
    """The definition whose name this is."""
    is_assigned: bool = False

    @property
    def line(self) -> int:
        """The line of the name, counted from 1."""
        return self.node.start_point[0] + 1


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: where it is and how it is declared."""

    name: str
    qualified_name: str
    """Methods with their class: ``Cart.add``."""
    kind: str
    path: str
    line: int
    end_line: int
    signature: str
    owner: str | None = None
    """The class that it is a member of."""
    is_local: bool = False
    """True if it is defined inside a function."""


class ParsedSource:
    """A file and its syntax tree."""

    def __init__(self, path: str, text: str) -> None:
        from tree_sitter import Parser

        self.path = path
        self.language = language_of(path) or ""
        self.syntax: Syntax = SYNTAXES[self.language]
        self.data = text.encode("utf-8", "surrogatepass")
        # A parser of its own: those of the index may be at work in another thread.
        self._tree = Parser(language_grammar(self.language)).parse(self.data)
        self.root = self._tree.root_node
        self._mentions: dict[str, list[Mention]] = {}

    @cached_property
    def lines(self) -> list[str]:
        """The text, line by line."""
        return self.data.decode("utf-8", "replace").split("\n")

    def line_text(self, line: int) -> str:
        """Return a line without its indentation, shortened if it is long."""
        return self.lines[line - 1].strip()[:_LINE] if line <= len(self.lines) else ""

    def text_of(self, node: Node) -> str:
        """Return the source text of a node."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def mentions(self, name: str) -> list[Mention]:
        """Return every place where the name stands as code, in order."""
        known = self._mentions.get(name)
        if known is None:
            known = self._mentions[name] = list(self._find(name))
        return known

    def _find(self, name: str) -> Iterator[Mention]:
        pattern = rb"(?<![\w$])" + re.escape(name.encode("utf-8", "replace")) + rb"(?![\w$])"
        for match in re.finditer(pattern, self.data):
            node = self.root.descendant_for_byte_range(match.start(), match.end())
            if node is None:
                continue
            if node.start_byte == match.start() and node.end_byte == match.end():
                mention = self._classify(node)
            else:
                mention = self._quoted(node, match.start())
            if mention is not None:
                yield mention

    def _quoted(self, node: Node, start: int) -> Mention | None:
        """Return a name in a quoted annotation or an export list of Python, else nothing."""
        if self.language != "python" or node.type not in _TEXTS:
            return None
        ancestor: Node | None = node
        for _ in range(_STATEMENTS):
            ancestor = ancestor.parent if ancestor else None
            if ancestor is None:
                return None
            if ancestor.type in _TYPE_CONTEXT:
                break
        else:
            return None
        point = self.data.count(b"\n", node.start_byte, start)
        # A long quoted text in several lines is documentation, not a type.
        return Mention(node, PLAIN, node) if not point else None

    def _classify(self, node: Node) -> Mention | None:
        parent = node.parent
        if parent is None:
            return None
        if node.type in _TEXTS or node.type in ("comment", "line_comment", "block_comment"):
            return self._in_all(node) or self._quoted(node, node.start_byte)
        if self._is_import(node):
            return Mention(node, IMPORT, node)
        member = self._member(node, parent)
        if member is not None:
            return member
        defined = self._defined(node, parent)
        if defined is not None:
            return defined
        if _stands_in(node, parent, self.syntax.skipped):
            return None
        if node.type in ("property_identifier", "field_identifier", "label_name"):
            return None
        return self._reference(node, PLAIN, node, None)

    def _in_all(self, node: Node) -> Mention | None:
        """Return a name that ``__all__`` lists."""
        ancestor: Node | None = node
        for _ in range(4):
            ancestor = ancestor.parent if ancestor else None
            if ancestor is not None and ancestor.type in ("assignment", "augmented_assignment"):
                left = ancestor.child_by_field_name("left")
                listed = left is not None and self.text_of(left) == "__all__"
                return Mention(node, PLAIN, node) if listed else None
        return None

    def _is_import(self, node: Node) -> bool:
        ancestor = node.parent
        for _ in range(_STATEMENTS):
            if ancestor is None:
                return False
            if ancestor.type in self.syntax.imports:
                return True
            ancestor = ancestor.parent
        return False

    def _member(self, node: Node, parent: Node) -> Mention | None:
        fields = self.syntax.members.get(parent.type)
        if fields is None:
            return None
        receiver_field, name_field = fields
        if not name_field:
            named = parent.named_children
            if len(named) < 2 or named[-1] != node:
                return None
            return self._reference(node, MEMBER, parent, named[0])
        if parent.child_by_field_name(name_field) != node:
            return None
        receiver = parent.child_by_field_name(receiver_field)
        if receiver is None:
            return self._reference(node, PLAIN, node, None)
        return self._reference(node, MEMBER, parent, receiver)

    def _reference(self, node: Node, role: str, expression: Node, receiver: Node | None) -> Mention:
        outer, around = expression, expression.parent
        while around is not None and around.type in self.syntax.wrappers:
            outer, around = around, around.parent
        is_call = is_assigned = False
        if around is not None:
            callee = self.syntax.calls.get(around.type)
            is_call = callee is not None and around.child_by_field_name(callee) in (outer, node)
            left = around.child_by_field_name("left")
            is_assigned = left is not None and left == outer
        if expression.type == "method_invocation":
            is_call = True
        if around is not None and around.type == "token_tree":
            following = outer.next_sibling
            is_call = following is not None and following.type == "token_tree"
        return Mention(
            node, role, expression, receiver, is_call, self._is_base(outer), None, is_assigned
        )

    def _is_base(self, node: Node) -> bool:
        child, ancestor = node, node.parent
        for _ in range(3):
            if ancestor is None:
                return False
            if ancestor.type in self.syntax.bases:
                return True
            if ancestor.type in ("class_definition", "impl_item", "trait_item"):
                fields = ("superclasses", "trait", "bounds")
                return any(ancestor.child_by_field_name(field) == child for field in fields)
            if ancestor.type in ("type_arguments", "keyword_argument", "subscript"):
                return False
            child, ancestor = ancestor, ancestor.parent
        return False

    def _defined(self, node: Node, parent: Node) -> Mention | None:
        """Return the mention if it defines the name, or binds it inside a function."""
        kind = self.syntax.definitions.get(parent.type)
        if kind is not None and node in parent.children_by_field_name("name"):
            is_local = kind in LOCAL_VALUES and self.scope_of(parent) is not None
            role = BINDING if is_local else DEFINITION
            return Mention(node, role, node, definition=parent)
        child, ancestor = node, parent
        while ancestor.type in self.syntax.patterns and ancestor.parent is not None:
            if _stands_in(child, ancestor, self.syntax.skipped):
                return None
            child, ancestor = ancestor, ancestor.parent
        if not _stands_in(child, ancestor, self.syntax.bindings):
            return None
        if ancestor.type == "assignment" and self.scope_of(ancestor) is None:
            return Mention(node, DEFINITION, node, definition=ancestor, is_assigned=True)
        return Mention(node, BINDING, node)

    def scope_of(self, node: Node) -> Node | None:
        """Return the function around a node; ``None`` at the top and directly in a class."""
        ancestor = node.parent
        while ancestor is not None:
            if ancestor.type in self.syntax.functions:
                return ancestor
            ancestor = ancestor.parent
        return None

    def scopes(self, mention: Mention) -> list[int]:
        """Return the ids of the functions around a mention, the innermost first."""
        start = mention.definition if mention.definition is not None else mention.node
        ids: list[int] = []
        ancestor = start.parent
        while ancestor is not None:
            if ancestor.type in self.syntax.functions:
                ids.append(ancestor.id)
            ancestor = ancestor.parent
        return ids

    def local_binding(self, mention: Mention) -> Mention | None:
        """Return what gives the name its meaning inside the functions around a mention."""
        name = self.text_of(mention.node)
        around = self.scopes(mention)
        if not around:
            return None
        best: tuple[int, Mention] | None = None
        for other in self.mentions(name):
            if other.role not in (BINDING, DEFINITION) or self.owner_node(other) is not None:
                continue
            own = self.scopes(other)
            if own and own[0] in around and (best is None or around.index(own[0]) < best[0]):
                best = (around.index(own[0]), other)
        return best[1] if best else None

    def owner_node(self, mention: Mention) -> Node | None:
        """Return the class that a definition is a direct member of."""
        if mention.definition is None:
            return None
        ancestor = mention.definition.parent
        while ancestor is not None:
            if ancestor.type in self.syntax.functions:
                return None
            if ancestor.type in self.syntax.classes:
                return ancestor
            ancestor = ancestor.parent
        return None

    def class_around(self, node: Node) -> Node | None:
        """Return the class in whose body a node stands, at any depth."""
        ancestor = node.parent
        while ancestor is not None:
            if ancestor.type in self.syntax.classes:
                return ancestor
            ancestor = ancestor.parent
        return None

    def name_of_class(self, node: Node) -> str:
        """Return the name of a class, or of the type that an ``impl`` is for."""
        field = "type" if node.type == "impl_item" else "name"
        named = node.child_by_field_name(field)
        return re.split(r"[<\s]", self.text_of(named))[0].rpartition("::")[2] if named else ""

    def owner_of(self, mention: Mention) -> str | None:
        """Return the name of the type that a definition belongs to."""
        node = mention.definition
        if node is not None and node.type == "method_declaration":
            receiver = node.child_by_field_name("receiver")
            if receiver is not None:
                names = re.findall(r"\w+", re.sub(r"\[.*?\]", "", self.text_of(receiver)))
                return names[-1] if names else None
        owner = self.owner_node(mention)
        if owner is not None:
            return self.name_of_class(owner)
        return self._owner_of_attribute(mention)

    def _owner_of_attribute(self, mention: Mention) -> str | None:
        if mention.role != MEMBER or mention.receiver is None:
            return None
        if self.text_of(mention.receiver) not in self.syntax.own:
            return None
        around = self.class_around(mention.node)
        return self.name_of_class(around) if around is not None else None

    def symbol(self, mention: Mention) -> Symbol:
        """Return the definition that a mention is the name of."""
        node = mention.definition or mention.node
        name, owner = self.text_of(mention.node), self.owner_of(mention)
        kind = self.syntax.definitions.get(node.type, "field" if owner else "value")
        if kind == "function" and owner:
            kind = "method"
        if kind == "value" and owner:
            kind = "field"
        outer = self.enclosing(node)
        if owner and outer.rpartition(".")[2] != owner:
            outer = owner
        while node.parent is not None and node.parent.type in self.syntax.free:
            node = node.parent
        return Symbol(
            name,
            f"{outer}.{name}" if outer else name,
            kind,
            self.path,
            mention.line,
            node.end_point[0] + 1,
            self._signature(mention),
            owner,
            bool(self.scopes(mention)) and not owner,
        )

    def _signature(self, mention: Mention) -> str:
        node = mention.definition
        if node is None or node.type in ("assignment", "variable_declarator"):
            return self.line_text(mention.line)
        body = node.child_by_field_name("body")
        if body is None and node.type in ("type_spec", "struct_item", "enum_item"):
            return self.line_text(mention.line)
        end = body.start_byte if body is not None else node.end_byte
        text = self.data[node.start_byte : min(end, node.start_byte + 4 * _SIGNATURE)]
        return " ".join(text.decode("utf-8", "replace").split()).rstrip(" {:")[:_SIGNATURE]

    def enclosing(self, node: Node) -> str:
        """Return the qualified name of the definitions around a node; empty at the top."""
        names: list[str] = []
        ancestor = node.parent
        while ancestor is not None:
            kind = self.syntax.definitions.get(ancestor.type)
            if ancestor.type in self.syntax.classes:
                names.append(self.name_of_class(ancestor))
            elif kind is not None and kind not in LOCAL_VALUES:
                named = ancestor.child_by_field_name("name")
                if named is not None and named != node:
                    names.append(self.text_of(named))
                    names += self._receiver(ancestor)
            elif kind in LOCAL_VALUES and not self.scope_of(ancestor):
                named = ancestor.child_by_field_name("name")
                if named is not None and named != node and named.child_count == 0:
                    names.append(self.text_of(named))
            ancestor = ancestor.parent
        return ".".join(reversed(names))

    def _receiver(self, node: Node) -> list[str]:
        receiver = node.child_by_field_name("receiver")
        if receiver is None:
            return []
        names = re.findall(r"\w+", re.sub(r"\[.*?\]", "", self.text_of(receiver)))
        return names[-1:]


def _stands_in(node: Node, parent: Node, table: dict[str, tuple[str, ...]]) -> bool:
    """True if the table names a field of the parent in which the node stands."""
    fields = table.get(parent.type)
    if fields is None:
        return False
    if fields is ANY:
        return _is_bound_child(node, parent)
    return any(node in parent.children_by_field_name(field) for field in fields)


def _is_bound_child(node: Node, parent: Node) -> bool:
    """True unless the node stands in a field that is a type or a value of its parent."""
    for field in ("type", "value", "return_type", "condition"):
        if parent.child_by_field_name(field) == node:
            return False
    return True


def is_supported(path: str) -> bool:
    """True if questions about structure can be answered for a file."""
    return language_of(path) in SYNTAXES
