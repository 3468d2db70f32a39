"""Find the files of a tree that an import names.

A tree does not say where its source roots are, so a module is looked for by the end of its path:
``shop.cart`` is any ``shop/cart.py`` whose folder is not itself inside a package. What no file of
the tree fits is a library from elsewhere.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from evercontext.index.languages import language_of
from evercontext.index.structure.imports import STAR, Import

_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_SCRIPTS = frozenset({"typescript", "tsx", "javascript"})
_ALIASES = ("@/", "~/", "#")
"""How projects abbreviate their own source folder."""
_FOLDER_FILES = {"__init__": "python", "index": "typescript", "mod": "rust"}


class ModulePaths:
    """The files of a tree by the modules that they are."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)

    @cached_property
    def _by_stem(self) -> dict[str, list[tuple[tuple[str, ...], str]]]:
        """Last part of a module's path → its parts and its file; a folder's file is the folder."""
        table: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        for path in sorted(self.paths):
            parts = list(path.split("/"))
            parts[-1] = parts[-1].partition(".")[0]
            if parts[-1] in _FOLDER_FILES and len(parts) > 1:
                parts.pop()
            table[parts[-1]].append((tuple(parts), path))
        return table

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        table: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            table[posixpath.dirname(path)].append(path)
        return table

    def in_folder(self, folder: str, language: str) -> list[str]:
        """Return the files of one language directly in a folder."""
        return [path for path in self._folders.get(folder, ()) if language_of(path) == language]

    def resolve(self, imported: Import, path: str) -> list[str]:
        """Return the files that the import of a file may mean; none: a library from elsewhere."""
        language = language_of(path)
        if language == "python":
            return self._python(imported.module, path)
        if language in _SCRIPTS:
            return self._script(imported.module, path)
        if language == "go":
            return self._go(imported.module)
        if language == "rust":
            return self._rust(imported.module, path)
        return self._java(imported)

    def submodule(self, imported: Import, path: str) -> list[str]:
        """Return the files that the imported name itself is, where a name can be a module."""
        if imported.name is None or imported.name == STAR:
            return []
        language = language_of(path)
        if language == "python":
            dot = "" if imported.module.endswith(".") else "."
            return self._python(f"{imported.module}{dot}{imported.name}", path)
        if language == "rust":
            return self._rust(f"{imported.module}::{imported.name}", path)
        return []

    def _python(self, module: str, path: str) -> list[str]:
        level = len(module) - len(module.lstrip("."))
        parts = [part for part in module[level:].split(".") if part]
        if not level:
            return self._python_tail(parts)
        folder = path.split("/")[:-1]
        return self._python_at([*folder[: len(folder) - (level - 1)], *parts])

    def _python_at(self, parts: Sequence[str]) -> list[str]:
        name = "/".join(parts)
        candidates = (f"{name}.py", f"{name}.pyi", f"{name}/__init__.py", f"{name}/__init__.pyi")
        return [candidate.lstrip("/") for candidate in candidates if candidate in self.paths]

    def _python_tail(self, parts: Sequence[str]) -> list[str]:
        if not parts:
            return []
        matches = []
        for own, path in self._by_stem.get(parts[-1], ()):
            if language_of(path) != "python" or own[-len(parts) :] != tuple(parts):
                continue
            above = own[: -len(parts)]
            # Inside a package an absolute import cannot mean a sibling.
            if above and "/".join((*above, "__init__.py")) in self.paths:
                continue
            matches.append(path)
        return matches

    def _script(self, module: str, path: str) -> list[str]:
        if module.startswith("."):
            return self._script_at(posixpath.normpath(f"{posixpath.dirname(path)}/{module}"))
        for alias in _ALIASES:
            if module.startswith(alias):
                module = module[len(alias) :].lstrip("/")
                break
        parts = tuple(part for part in _without_ending(module).split("/") if part)
        if len(parts) < 2 and "/" not in module:
            return []
        return [
            file
            for own, file in self._by_stem.get(parts[-1], ())
            if own[-len(parts) :] == parts and language_of(file) in _SCRIPTS
        ]

    def _script_at(self, name: str) -> list[str]:
        bare = _without_ending(name)
        names = [name, *(bare + end for end in _SCRIPT_ENDINGS)]
        names += [f"{name}/index{end}" for end in _SCRIPT_ENDINGS]
        names += [name + end for end in _SCRIPT_ENDINGS]
        return list(dict.fromkeys(name for name in names if name in self.paths))

    def _go(self, module: str) -> list[str]:
        parts = module.split("/")
        # The nearest folder: the longest end of the import's path that is one.
        for start in range(len(parts)):
            files = self.in_folder("/".join(parts[start:]), "go")
            if files:
                return files
        tops = {folder.partition("/")[0] for folder in self._folders}
        return self.in_folder("", "go") if not parts[-1:] or parts[-1] not in tops else []

    def _rust(self, module: str, path: str) -> list[str]:
        parts, own = module.split("::"), path.split("/")
        stem = own[-1].removesuffix(".rs")
        here = own[:-1] if stem in ("mod", "lib", "main") else [*own[:-1], stem]
        is_relative = parts[0] in ("self", "super", "crate")
        while parts and parts[0] in ("self", "super", "crate"):
            first = parts.pop(0)
            if first == "super":
                here = here[:-1]
            elif first == "crate":
                here = own[: own.index("src") + 1] if "src" in own else []
        if not parts:
            names = ("lib.rs", "main.rs", "mod.rs")
            files = ["/".join((*here, name)) for name in names]
            matches = [*(file for file in files if file in self.paths), *self._rust_at(here)]
            return list(dict.fromkeys(matches))
        exact = self._rust_at([*here, *parts])
        if exact or is_relative:
            return exact
        return [
            file
            for table, file in self._by_stem.get(parts[-1], ())
            if language_of(file) == "rust" and (len(parts) == 1 or table[-2:-1] == (parts[-2],))
        ]

    def _rust_at(self, parts: Sequence[str]) -> list[str]:
        name = "/".join(parts)
        return [file for file in (f"{name}.rs", f"{name}/mod.rs") if file in self.paths]

    def _java(self, imported: Import) -> list[str]:
        parts = tuple(imported.module.split("."))
        if imported.name == STAR:
            tail = "/".join(parts)
            return [
                file
                for folder, files in self._folders.items()
                if folder == tail or folder.endswith("/" + tail)
                for file in files
                if language_of(file) == "java"
            ]
        full_name = (*parts, imported.name or "")
        for tail_parts in (full_name, parts):
            matches = [
                file
                for own, file in self._by_stem.get(tail_parts[-1], ())
                if language_of(file) == "java" and own[-len(tail_parts) :] == tail_parts
            ]
            if matches:
                return matches
        return []


def _without_ending(name: str) -> str:
    for ending in _SCRIPT_ENDINGS:
        if name.endswith(ending):
            return name[: -len(ending)]
    return name
