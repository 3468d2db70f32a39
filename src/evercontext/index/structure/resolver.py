"""Decide which definition a mention of a name means, and how sure that is.

Names are followed through local variables, classes, imports and re-exports. Where the type of an
object is not written in its file, only the name speaks for a member: such an answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evercontext.index.structure.imports import STAR, Import
from evercontext.index.structure.receiver_types import BUILT_IN, type_of
from evercontext.index.structure.source import (
    BINDING,
    DEFINITION,
    IMPORT,
    MEMBER,
    Mention,
    ParsedSource,
    Symbol,
)
from evercontext.index.structure.source_tree import SourceTree

if TYPE_CHECKING:
    from tree_sitter import Node

SAME_FILE, IMPORTED, TYPE, SUPERTYPE, NAME = "same file", "imported", "type", "supertype", "name"
"""How sure an answer is: defined in the same file · reached through imports or the package · a
member of the known type of its object · a member of a supertype or subtype of it · the name alone.
"""
CERTAINTIES = (SAME_FILE, IMPORTED, TYPE, SUPERTYPE, NAME)
CLASS_KINDS = frozenset({"class", "interface", "type", "enum", "struct", "trait", "namespace"})
_DEEPEST = 8
_DEFAULT = re.compile(
    r"export\s+default\s+(?:abstract\s+)?(?:async\s+)?(?:class\s+|function\s*\*?\s+)?([\w$]+)"
)


@dataclass(frozen=True, slots=True)
class NameTarget:
    """What a name stands for: a definition at the top of a file, or the file itself."""

    path: str
    name: str | None
    """``None``: the module."""


NameTargets = tuple[NameTarget, ...]
Member = tuple[str, str]
"""Path and name of the class that defines a member."""
_UNKNOWN: Member = ("", "")


class Resolver:
    """Follows names from file to file."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._targets: dict[tuple[str, str], NameTargets | None] = {}
        self._bases: dict[NameTarget, tuple[str, ...]] = {}

    # names at the top of a file

    def targets(self, path: str, name: str, depth: int = 0) -> NameTargets | None:
        """Return what a name means at the top of a file.

        Nothing if it comes from a library; ``None`` if the file does not say where it is from.
        """
        key = path, name
        if key not in self._targets:
            self._targets[key] = ()  # an import that leads back here ends here
            self._targets[key] = self._find_targets(path, name, depth)
        return self._targets[key]

    def _find_targets(self, path: str, name: str, depth: int) -> NameTargets | None:
        source = self.tree.source(path)
        if source is None or depth > _DEEPEST:
            return None
        if self.is_defined_at_top(source, name):
            return (NameTarget(path, name),)
        imports = self.tree.imports(path)
        for imported in imports:
            if imported.local == name:
                return self._imported(imported, path, depth)
            if imported.name is None and imported.local.startswith(f"{name}."):
                # ``import shop.cart`` binds ``shop``.
                return self._imported(Import(name, name, None, imported.line), path, depth)
        if source.syntax.package_wide:
            near = self._in_package(source, name)
            if near:
                return near
        for imported in imports:
            if imported.local == STAR:
                for module in self.tree.modules.resolve(imported, path):
                    more = self.targets(module, name, depth + 1)
                    if more:
                        return more
        return None

    def is_defined_at_top(self, source: ParsedSource, name: str) -> bool:
        """True if the file defines the name outside of classes and functions."""
        return any(
            m.role == DEFINITION and not source.scopes(m) and source.owner_of(m) is None
            for m in source.mentions(name)
        )

    def _in_package(self, source: ParsedSource, name: str) -> NameTargets:
        folder = source.path.rpartition("/")[0]
        near = set(self.tree.modules.in_folder(folder, source.language))
        for path in self.tree.paths_defining(name):
            other = self.tree.source(path) if path in near else None
            if other is not None and self.is_defined_at_top(other, name):
                return (NameTarget(path, name),)
        return ()

    def _imported(self, imported: Import, path: str, depth: int) -> NameTargets:
        modules = self.tree.modules
        if imported.name is None:
            return tuple(NameTarget(file, None) for file in modules.resolve(imported, path))
        targets: list[NameTarget] = []
        for file in modules.resolve(imported, path):
            targets += self._exported(file, imported.name, depth)
        if not targets:
            targets = [NameTarget(file, None) for file in modules.submodule(imported, path)]
        return tuple(dict.fromkeys(targets))

    def _exported(self, path: str, name: str, depth: int) -> NameTargets:
        if name == "default":
            source = self.tree.source(path)
            text = source.data.decode("utf-8", "replace") if source is not None else ""
            match = _DEFAULT.search(text)
            name = match[1] if match else name
        return self.targets(path, name, depth + 1) or ()

    def import_at(self, source: ParsedSource, mention: Mention) -> NameTargets:
        """Return what an import names at a mention inside of it."""
        name = source.text_of(mention.node)
        for imported in self.tree.imports(source.path):
            if imported.line == mention.line and name in (imported.name, imported.local):
                return self._imported(imported, source.path, 0)
        return ()

    # members of classes

    def class_targets(self, source: ParsedSource, name: str) -> NameTargets | None:
        """Return the classes that a name means in a file; ``None``: the file does not say."""
        targets = self.targets(source.path, name)
        if targets is None and "::" in name:
            targets = self._scoped(source, name)
        if targets is None and "." in name:
            targets = self._dotted(source, name)
        if targets is None:
            return None
        return tuple(target for target in targets if target.name is not None)

    def bases(self, target: NameTarget) -> tuple[str, ...]:
        """Return the names of the supertypes that a class declares."""
        if target not in self._bases:
            self._bases[target] = self._find_bases(target)
        return self._bases[target]

    def _find_bases(self, target: NameTarget) -> tuple[str, ...]:
        source = self.tree.source(target.path)
        if source is None or target.name is None:
            return ()
        names: list[str] = []
        for mention in source.mentions(target.name):
            node = mention.definition
            if mention.role == DEFINITION and node is not None:
                names += base_names(source, node)
            around = mention.node.parent
            for _ in range(3):
                if around is not None and around.type == "impl_item":
                    trait = around.child_by_field_name("trait")
                    if trait is not None and source.name_of_class(around) == target.name:
                        names.append(_last_name(source.text_of(trait)))
                    break
                around = around.parent if around is not None else None
        return tuple(dict.fromkeys(names))

    def find_member(self, target: NameTarget, name: str, depth: int = 0) -> Member | None:
        """Return the class that defines a member of a class: itself, or a supertype.

        ``None`` if no class of the tree does; ("", "") if a supertype is not known.
        """
        source = self.tree.source(target.path)
        if source is None or target.name is None or depth > _DEEPEST:
            return None
        if self._defines_member(source, target.name, name):
            return target.path, target.name
        unknown = False
        for base in self.bases(target):
            targets = self.class_targets(source, base)
            if not targets:
                unknown = True
            for parent in targets or ():
                if parent == target:
                    continue
                member = self.find_member(parent, name, depth + 1)
                if member is not None and member != _UNKNOWN:
                    return member
                unknown = unknown or member == _UNKNOWN
        return _UNKNOWN if unknown else None

    def _defines_member(self, source: ParsedSource, owner: str, name: str) -> bool:
        sources = [source]
        if source.language in ("go", "rust"):
            near = set(self.tree.modules.in_folder(source.path.rpartition("/")[0], source.language))
            more = (self.tree.source(p) for p in self.tree.paths_defining(name) if p in near)
            sources += [other for other in more if other is not None]
        return any(
            (m.role == DEFINITION or (m.role == MEMBER and m.is_assigned))
            and each.owner_of(m) == owner
            for each in sources
            for m in each.mentions(name)
        )

    def ancestors(self, target: NameTarget, depth: int = 0) -> set[NameTarget]:
        """Return the supertypes of a class, at any distance."""
        source = self.tree.source(target.path)
        if source is None or depth > _DEEPEST:
            return set()
        above: set[NameTarget] = set()
        for base in self.bases(target):
            for parent in self.class_targets(source, base) or ():
                if parent != target and parent not in above:
                    above |= {parent} | self.ancestors(parent, depth + 1)
        return above

    # mentions

    def certainty(
        self, source: ParsedSource, mention: Mention, symbols: Iterable[Symbol]
    ) -> str | None:
        """Return how sure it is that a mention means one of some definitions; ``None``: it is not.

        Every definition must have the name that is mentioned, or be imported under it.
        """
        candidates = list(symbols)
        if mention.role == IMPORT:
            return self._matching(source, self.import_at(source, mention), candidates)
        if mention.role == MEMBER:
            return self._member_certainty(source, mention, candidates)
        if mention.role == BINDING:
            return None
        binding = source.local_binding(mention)
        if binding is not None:
            local = [s for s in candidates if s.path == source.path and s.line == binding.line]
            return SAME_FILE if local else None
        inside = self._in_own_class(source, mention, candidates)
        if inside is not None:
            return inside
        targets = self.targets(source.path, source.text_of(mention.node))
        if targets is None:
            tops = any(s.owner is None for s in candidates)
            return NAME if source.language == "rust" and tops else None
        return self._matching(source, targets, candidates)

    def _in_own_class(
        self, source: ParsedSource, mention: Mention, candidates: list[Symbol]
    ) -> str | None:
        """Return the certainty of a member that is named without its object."""
        around = source.class_around(mention.node)
        if around is None or not any(s.owner for s in candidates):
            return None
        if not source.syntax.implicit_own and source.scope_of(mention.node) is not None:
            return None
        return self._of_class(
            source,
            NameTarget(source.path, source.name_of_class(around)),
            source.text_of(mention.node),
            candidates,
        )

    def _matching(
        self, source: ParsedSource, targets: NameTargets, candidates: list[Symbol]
    ) -> str | None:
        for symbol in candidates:
            if symbol.owner is None and NameTarget(symbol.path, symbol.name) in targets:
                return SAME_FILE if symbol.path == source.path else IMPORTED
        return None

    def _member_certainty(
        self, source: ParsedSource, mention: Mention, candidates: list[Symbol]
    ) -> str | None:
        assert mention.receiver is not None
        name = source.text_of(mention.node)
        text = source.text_of(mention.receiver)
        if text in source.syntax.own or text.startswith("super("):
            return self._own_certainty(source, mention, name, candidates)
        classes = self._receiver_targets(source, mention.receiver, text)
        if classes is None:
            return NAME if any(s.owner for s in candidates) else None
        best: str | None = None
        for target in classes:
            if target.name is None:
                targets = self._exported(target.path, name, 0)
                best = best or self._matching(source, targets, candidates)
            else:
                best = best or self._of_class(source, target, name, candidates)
        return best

    def _own_certainty(
        self, source: ParsedSource, mention: Mention, name: str, candidates: list[Symbol]
    ) -> str | None:
        around = source.class_around(mention.node)
        if around is None:
            return NAME
        target = NameTarget(source.path, source.name_of_class(around))
        assert mention.receiver is not None
        if source.text_of(mention.receiver).startswith("super"):
            return self._inherited_certainty(source, target, name, candidates)
        sure = self._of_class(source, target, name, candidates)
        if sure is not None:
            return sure
        # A mixin uses what only the class has that it is mixed into.
        member = self.find_member(target, name)
        return NAME if member in (None, _UNKNOWN) and any(s.owner for s in candidates) else None

    def _inherited_certainty(
        self, source: ParsedSource, target: NameTarget, name: str, candidates: list[Symbol]
    ) -> str | None:
        for base in self.bases(target):
            for parent in self.class_targets(source, base) or ():
                sure = self._of_class(source, parent, name, candidates)
                if parent != target and sure is not None:
                    return sure
        return None

    def _receiver_targets(
        self, source: ParsedSource, receiver: Node, text: str
    ) -> NameTargets | None:
        """Return the modules or classes that a receiver is or has; ``None``: unknown."""
        is_name = bool(re.fullmatch(r"[\w$]+(?:(?:\.|::)[\w$]+)*", text))
        if is_name and not self._is_local(source, receiver, text):
            targets = self.targets(source.path, text)
            if targets is None and "::" in text:
                targets = self._scoped(source, text)
            if targets is None and "." in text:
                targets = self._dotted(source, text)
            if targets is not None and not self._is_value(targets):
                return targets
        types = type_of(source, receiver)
        if not types:
            return None
        classes: list[NameTarget] = []
        for type_name in types:
            targets = self.class_targets(source, type_name)
            if targets is None and type_name not in BUILT_IN:
                return None
            classes += targets or ()
        return tuple(classes)

    def _is_local(self, source: ParsedSource, receiver: Node, text: str) -> bool:
        first = re.split(r"\.|::", text)[0]
        for mention in source.mentions(first):
            if receiver.start_byte == mention.node.start_byte:
                return source.local_binding(mention) is not None
        return False

    def _dotted(self, source: ParsedSource, text: str) -> NameTargets | None:
        """Return what a dotted receiver means: a class of an imported module."""
        before, _, last = text.rpartition(".")
        if before in source.syntax.own:
            return None
        outer = self.targets(source.path, before)
        modules = [t for t in outer or () if t.name is None]
        if outer is not None and not outer:
            return ()
        targets = [t for module in modules for t in self._exported(module.path, last, 0)]
        if not targets and modules and source.language == "python":
            submodule = Import(text, text, None, 0)
            targets = [
                NameTarget(p, None) for p in self.tree.modules.resolve(submodule, source.path)
            ]
        return tuple(targets) if targets else None

    def _scoped(self, source: ParsedSource, text: str) -> NameTargets | None:
        module, _, last = text.rpartition("::")
        targets = self._imported(Import(last, module, last, 0), source.path, 0)
        return targets or None

    def _is_value(self, targets: NameTargets) -> bool:
        """True if the targets are variables, whose type decides."""
        for target in targets:
            source = self.tree.source(target.path) if target.name is not None else None
            for mention in source.mentions(target.name or "") if source is not None else ():
                if mention.role == DEFINITION and not source.scopes(mention):  # type: ignore[union-attr]
                    return source.symbol(mention).kind in ("value", "field")  # type: ignore[union-attr]
        return False

    def _of_class(
        self, source: ParsedSource, target: NameTarget, name: str, candidates: list[Symbol]
    ) -> str | None:
        """Return the certainty of a member of a class that is known."""
        member = self.find_member(target, name)
        owners = {NameTarget(s.path, s.owner) for s in candidates if s.owner}
        if member is None or member == _UNKNOWN:
            return SUPERTYPE if any(target in self.ancestors(owner) for owner in owners) else None
        defining = NameTarget(*member)
        for owner in owners:
            if owner == defining or (owner.name == defining.name and _near(owner, defining)):
                return SAME_FILE if owner.path == source.path else TYPE
        if any(defining in self.ancestors(owner) for owner in owners):
            return SUPERTYPE
        return None


def _near(first: NameTarget, second: NameTarget) -> bool:
    """True if two files are of one folder: Go and Rust spread a type's methods over files."""
    ends = (".go", ".rs")
    same = first.path.rpartition("/")[0] == second.path.rpartition("/")[0]
    return same and first.path.endswith(ends)


def _last_name(text: str) -> str:
    names = re.findall(r"[\w$]+", re.split(r"[<\[(]", text)[0])
    return names[-1] if names else ""


def base_names(source: ParsedSource, node: Node) -> list[str]:
    """Return the names of the supertypes in the head of a class."""
    names: list[str] = []
    listed = node.child_by_field_name("superclasses") or node.child_by_field_name("bounds")
    if listed is not None:
        names += [
            _last_name(source.text_of(child))
            for child in listed.named_children
            if child.type not in ("keyword_argument", "comment")
        ]
    for child in node.children:
        if child.type in source.syntax.bases:
            names += _heritage(source, child)
    body = node.child_by_field_name("type")
    if body is not None and body.type in ("struct_type", "interface_type"):
        names += _embedded(source, body)
    return [name for name in names if name]


def _heritage(source: ParsedSource, node: Node) -> list[str]:
    names: list[str] = []
    for child in node.named_children:
        if child.type in source.syntax.bases or child.type == "type_list":
            names += _heritage(source, child)
        elif child.type != "type_arguments":
            names.append(_last_name(source.text_of(child)))
    return names


def _embedded(source: ParsedSource, body: Node) -> list[str]:
    """Return what a Go struct or interface embeds."""
    names: list[str] = []
    for child in body.named_children:
        if child.type == "field_declaration_list":
            names += _embedded(source, child)
        elif child.type == "field_declaration" and child.child_by_field_name("name") is None:
            names.append(_last_name(source.text_of(child).lstrip("*")))
        elif child.type == "type_elem":
            names.append(_last_name(source.text_of(child)))
    return names
