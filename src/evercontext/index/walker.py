"""Walk the files that belong in the index: tracked by git, minus what is excluded.

In a git work tree git itself says what is ignored; elsewhere the ``.gitignore`` files are read
here. ``.evercontextignore`` at the root takes out more. Secrets, archives, lock files and links
never get in, whatever git says.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evercontext.files.generated_directories import GENERATED, VERSION_CONTROL
from evercontext.files.policy import FilePolicy
from evercontext.index.git_queries import ask_git, in_git
from evercontext.index.ignore_files import IgnoreFile
from evercontext.index.languages import language_of

IGNORE_FILE = ".evercontextignore"
MOST_FILES = 200_000
_SKIPPED_DIRECTORIES = GENERATED | VERSION_CONTROL | {".evercontext", ".nebula", "site-packages"}
_NOISE = re.compile(
    r"(^|/)(package-lock\.json|npm-shrinkwrap\.json|composer\.lock|go\.sum)$"
    r"|\.(lock|map|snap|svg)$|\.min\.(js|css)$|[-.]lock\.(json|ya?ml)$"
)
_SECRETS = re.compile(
    # Files of values, not of code: secrets.yaml, credentials.json, db-password.txt …
    r"(^|[/._-])(secrets?|credentials?|passwords?|service[-_]?accounts?|kubeconfig)([._-][^/]*)?"
    r"\.(json|ya?ml|toml|ini|cfg|conf|txt|properties|xml|csv)$|\.env\.[a-z]+$",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"", ".", "..", "~"})


Rules = tuple[tuple[str, IgnoreFile], ...]
"""Ignore files from the root down, each with its folder."""


@dataclass(frozen=True, slots=True)
class WalkedFile:
    """A file that may be indexed, as it was when the tree was walked."""

    path: str
    size: int
    modified: int
    """When the system last saw it change: no program can set that, as it can set the other time."""
    seen: int
    """When it was looked at; it was read later than that."""


class Walker:
    """Finds the files of one root."""

    def __init__(self, root: Path, policy: FilePolicy) -> None:
        self.root = root
        self.policy = policy
        self._prefix = f"{root}{os.sep}"

    async def walk(self) -> list[WalkedFile]:
        """Return every file that may be indexed, in order of their paths."""
        listed = await self._ask_git()
        names: Iterable[str] = self._scan() if listed is None else listed
        ignored = self._own_ignores()
        files = (self.look(n) for n in names if ignored is None or not ignored.verdict(n))
        return sorted((f for f in files if f is not None), key=lambda f: f.path)[:MOST_FILES]

    def look(self, path: str) -> WalkedFile | None:
        """Return one path as it is now, or ``None`` if it is not to be indexed."""
        if not self.wants(path):
            return None
        try:
            seen = os.lstat(f"{self._prefix}{path}")
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(seen.st_mode):
            return None
        return WalkedFile(path, seen.st_size, seen.st_ctime_ns, time.time_ns())

    def wants(self, path: str) -> bool:
        """True if a path by its name alone may be indexed."""
        if language_of(path) is None or not path.isprintable():
            return False
        if _NOISE.search(path) or _SECRETS.search(path):
            return False
        parts = path.split("/")
        if not _NO_NAMES.isdisjoint(parts):
            return False
        if not _SKIPPED_DIRECTORIES.isdisjoint(parts[:-1]):
            return False
        return not any(self.policy.protects(part) for part in parts)

    def may_hold(self, parts: tuple[str, ...]) -> bool:
        """True unless a path lies in a folder that is never looked into."""
        return _SKIPPED_DIRECTORIES.isdisjoint(parts)

    async def belongs(self, paths: list[str]) -> list[str]:
        """Return those of the paths that neither git nor our own file ignores."""
        own = self._own_ignores()
        indexed = [p for p in paths if own is None or not own.verdict(p)]
        if not indexed or not in_git(self.root):
            ignored = self._ignore_chain(indexed)
            return [p for p in indexed if p not in ignored]
        ignored_bytes = await self._git("check-ignore", "-z", "--stdin", stdin=_joined(indexed))
        ignored = set(_split(ignored_bytes or b""))
        return [p for p in indexed if p not in ignored]

    async def _ask_git(self) -> list[str] | None:
        if not in_git(self.root):
            return None
        listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        out = await self._git(*listing)
        if out is None:
            return None
        names = sorted(set(_split(out)))
        for nested in [n for n in names if n.endswith("/") or language_of(n) is None]:
            # A submodule, or a repository inside this one: its own git knows its files.
            inner = Walker(self.root / nested, self.policy)
            if (inner.root / ".git").exists():
                below = await inner._ask_git() or []
                names += [f"{nested.rstrip('/')}/{name}" for name in below]
        return names

    async def _git(self, *arguments: str, stdin: bytes = b"") -> bytes | None:
        done = await ask_git(self.root, *arguments, stdin=stdin)
        return done.stdout if done is not None and done.exit_code in (0, 1) else None

    def _own_ignores(self) -> IgnoreFile | None:
        return IgnoreFile.read(self.root / IGNORE_FILE)

    def _scan(self) -> Iterator[str]:
        """Yield paths outside git, honouring the ignore files on the way."""
        pending: list[tuple[str, Rules]] = [("", ())]
        while pending:
            directory, specs = pending.pop()
            own = IgnoreFile.read(self.root / directory / ".gitignore")
            if own is not None:
                specs = (*specs, (directory, own))
            for entry in _entries(self.root / directory):
                path = f"{directory}/{entry.name}" if directory else entry.name
                is_directory = entry.is_dir(follow_symlinks=False)
                if _ignored(path + "/" * is_directory, specs):
                    continue
                if not is_directory:
                    yield path
                elif entry.name not in _SKIPPED_DIRECTORIES:
                    pending.append((path, specs))

    def _ignore_chain(self, paths: list[str]) -> set[str]:
        ignored: set[str] = set()
        for path in paths:
            parents = ["", *("/".join(path.split("/")[:i]) for i in range(1, path.count("/") + 1))]
            chain = ((p, IgnoreFile.read(self.root / p / ".gitignore")) for p in parents)
            specs = tuple((p, rules) for p, rules in chain if rules is not None)
            if _ignored(path, specs):
                ignored.add(path)
        return ignored


def _split(out: bytes) -> list[str]:
    names = []
    for name in out.split(b"\0"):
        try:
            names.append(name.decode("utf-8"))
        except UnicodeDecodeError:
            continue
    return [name for name in names if name]


def _joined(paths: Iterable[str]) -> bytes:
    return b"\0".join(path.encode("utf-8", "surrogateescape") for path in paths) + b"\0"


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _ignored(path: str, specs: Rules) -> bool:
    """The deepest ignore file that says anything about a path decides."""
    for base, spec in reversed(specs):
        relative = path[len(base) + 1 :] if base else path
        verdict = spec.verdict(relative)
        if verdict is not None:
            return verdict
    return False
