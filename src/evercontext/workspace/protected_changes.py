"""Find changes that need approval: files some program runs unasked."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from evercontext.errors import PolicyError, ProtectedPath
from evercontext.files.directory_walk import Folder, walk
from evercontext.files.generated_directories import GENERATED
from evercontext.files.git_directories import GitGuard
from evercontext.files.path_names import parse
from evercontext.files.policy import FilePolicy

MOST_FOLDERS = 20_000
"""Folders that are looked through for work trees of git before the first change."""
ENVIRONMENT = "it is run as code, and no diff shows it"
_FIX = "A person has to approve it: ask for it in evercontext chat, or with run --ask"


class Protection:
    """What is known of one tree's protected places beyond their names."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self.git = GitGuard(root, environment)
        self._looked = False
        self._guard = threading.Lock()

    def caution(self, path: str, policy: FilePolicy) -> str | None:
        """Return why a person is asked before this file is changed; ``None`` if nobody is."""
        try:
            return self._reason(path, policy)
        except PolicyError:
            return None  # it is refused anyway, and told why

    def permit(self, paths: Iterable[str], policy: FilePolicy, *, approved: bool) -> None:
        """Raise ProtectedPath unless these files may be changed by this caller."""
        self._look()
        for path in paths:
            reason = self._reason(path, policy)
            if reason and not approved:
                raise ProtectedPath(f"protected path: {reason}", fix=_FIX)

    def _reason(self, path: str, policy: FilePolicy) -> str | None:
        parts = parse(path)
        policy.check_directory(parts)
        if reason := self.git.check(parts):
            return reason
        if place := policy.asks(parts):
            return place.reason
        above = (self._root.joinpath(*parts[:depth]) for depth in range(1, len(parts)))
        # A virtual environment is one by its pyvenv.cfg, whatever it is called.
        named = parts[-1:] == ("pyvenv.cfg",)
        return ENVIRONMENT if named or any((p / "pyvenv.cfg").exists() for p in above) else None

    def _look(self) -> None:
        """Find the work trees of git in the tree, once: their settings may name any place in it."""
        with self._guard:
            if self._looked:
                return
            self._looked = True
            seen = 0

            def look(folder: Folder) -> Iterable[str]:
                nonlocal seen
                seen += 1
                if ".git" in folder.names:
                    self.git.learn([self._root.joinpath(*folder.parts)])
                if seen > MOST_FOLDERS:
                    return ()
                return (n for n in folder.directories if n not in GENERATED and n != ".git")

            walk(self._root, look)
