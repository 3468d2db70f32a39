"""Write a version to its file, through the package `files` alone.

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
class FileState:
    """The state of a file before the work; no hash if it did not exist."""

    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A file's name below the folder that bounds its writing."""

    root: Path
    relative: str
    policy: FilePolicy
    home: Path

    @classmethod
    def of(cls, file: Path, project: Path, policy: FilePolicy, home: Path) -> TargetFile:
        """Bound the writing by the project, or by the file's own folder if that is elsewhere."""
        folder, inside = file.absolute().parent.resolve(), project.resolve()
        root = inside if folder.is_relative_to(inside) else folder
        return cls(root, (folder / file.name).relative_to(root).as_posix(), policy, home)

    def inspect(self) -> FileState:
        """Return the present state of the file; raise if it could not be written."""
        with self._tree() as tree:
            self._refuse_unwritable()
            try:
                content = tree.read(self.relative)
            except NotFound:
                return FileState(tree.preview(self.relative, "").path, None)
            # What the name leads to is what is replaced; the link itself stays.
            return FileState(tree.preview(content.path, content.content).path, content.sha256)

    def write(self, before: FileState, content: str, trace_id: str) -> None:
        """Replace the file if it is still in the given state."""
        mode = WriteMode.CREATE if before.sha256 is None else WriteMode.OVERWRITE
        with self._tree() as tree:
            tree.write(before.path, content, mode, trace_id=trace_id, if_match=before.sha256)

    def _refuse_unwritable(self) -> None:
        """Raise if the nearest existing folder is read-only."""
        folders = (self.root / self.relative).parents
        existing = next(folder for folder in folders if folder.exists())
        if not os.access(existing, os.W_OK):
            raise ReadOnlyTree("its folder is read-only")

    @contextmanager
    def _tree(self) -> Iterator[Tree]:
        tree = Tree.open(self.root, self.policy, self.home)
        try:
            yield tree
        except EverContextError as problem:
            message = f"{self.root / self.relative} cannot be written: {problem.message}"
            raise type(problem)(message, fix=_FIXES.get(problem.message, problem.fix)) from None
        finally:
            tree.close()
