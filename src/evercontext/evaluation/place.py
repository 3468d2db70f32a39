"""Where a version is written: one file in one folder, through the file room alone.

Its permissions stay, links are followed only inside the folder, what another program wrote
meanwhile is not overwritten, and the journal can take it back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import EverContextError, NotFound, ReadOnlyTree
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.policy import FilePolicy

_FIXES = {
    "hard link": "The same file has another name, which would keep the old text: use --output",
    "symlink not allowed": "It is a link that leads out of its folder: name its target",
    "changed": "Somebody wrote it meanwhile, and that was left alone",
    "file exists": "Somebody wrote it meanwhile, and that was left alone",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was found; no hash if there was none."""

    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """A file's name below the folder that bounds its writing."""

    root: Path
    relative: str
    policy: FilePolicy
    home: Path

    @classmethod
    def of(cls, file: Path, project: Path, policy: FilePolicy, home: Path) -> Place:
        """Below the project, or below its own folder where it lies elsewhere."""
        folder, inside = file.absolute().parent.resolve(), project.resolve()
        root = inside if folder.is_relative_to(inside) else folder
        return cls(root, (folder / file.name).relative_to(root).as_posix(), policy, home)

    def look(self) -> Seen:
        """Find out, before any work is done, whether the file could be written at all."""
        with self._tree() as tree:
            self._refuse_unwritable()
            try:
                found = tree.read(self.relative)
            except NotFound:
                return Seen(tree.preview(self.relative, "").path, None)
            # What the name leads to is what is replaced; the link itself stays.
            return Seen(tree.preview(found.path, found.content).path, found.sha256)

    def write(self, seen: Seen, content: str, trace_id: str) -> None:
        """Replace what was seen, and nothing that came after it."""
        mode = WriteMode.CREATE if seen.sha256 is None else WriteMode.OVERWRITE
        with self._tree() as tree:
            tree.write(seen.path, content, mode, trace_id=trace_id, if_match=seen.sha256)

    def _refuse_unwritable(self) -> None:
        """Raise if nothing can be made where it would have to be made."""
        folders = (self.root / self.relative).parents
        there = next(folder for folder in folders if folder.exists())
        if not os.access(there, os.W_OK):
            raise ReadOnlyTree("its folder is read-only")

    @contextmanager
    def _tree(self) -> Iterator[Tree]:
        tree = Tree.open(self.root, self.policy, self.home)
        try:
            yield tree
        except EverContextError as problem:
            said = f"{self.root / self.relative} cannot be written: {problem.message}"
            raise type(problem)(said, fix=_FIXES.get(problem.message, problem.fix)) from None
        finally:
            tree.close()
