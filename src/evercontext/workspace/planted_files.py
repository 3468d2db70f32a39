"""Find and quarantine files a command may not leave behind.

No sandbox can forbid a name that does not exist yet. So the protected places are known before a
command starts, and what is there afterwards and was not before is moved into our own folder. The
user may have made it just now: it is never deleted, and they are told where it is.
"""

from __future__ import annotations

import errno
import math
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from evercontext.errors import NoSandbox
from evercontext.files.directory_walk import Folder, Identity, make_usable, walk
from evercontext.files.generated_directories import BUILD_RESULTS, ENVIRONMENTS, GENERATED
from evercontext.files.git_directories import (
    COMMON,
    HEAD,
    HOOKS,
    OWN,
    STORES,
    GitGuard,
    is_git_directory,
)
from evercontext.files.path_names import printable_name
from evercontext.files.policy import FilePolicy
from evercontext.files.private_folders import make_private
from evercontext.files.protected_paths import is_obeyed, is_secret, plain

MOST_GUARDED = 1_000
"""Places that a sandbox holds without making every command slow."""
MOST_SEEN = 200_000
"""Files and directories that are looked at before a command starts."""
CACHE = "__pycache__"
_GIT_PARTS = frozenset({HEAD, COMMON, *STORES, "config", "hooks"})
_LONGEST_PATH = 4_000
_SMALLER = "Run in a subdirectory with --root"
_TICK = 20_000_000
"""Nanoseconds by which the clock of a file system may be behind ours."""


@dataclass(frozen=True, slots=True)
class Known:
    """The protected places from before a command, told apart from what took their name.

    A sandbox holds a place fast, but not the directories above it: these can be moved with it, and
    others made where they were.
    """

    own: frozenset[Identity] = frozenset()
    above: Mapping[str, Identity] = field(default_factory=dict)
    """The directory that each path was in."""
    closed: frozenset[Identity] = frozenset()
    """Directories that their owner could not use."""
    parts: frozenset[Identity] = frozenset()
    """What is called as the parts of a git directory are, wherever it is."""

    def holds(self, path: str, identity: Identity | None, above: Identity) -> bool:
        """Tell whether this place was there before, here or elsewhere in the tree."""
        # In the same directory: somebody saved it anew, which no command in a sandbox can do.
        return identity in self.own or self.above.get(path) == above

    def to_json(self) -> dict[str, object]:
        """Return it as a mark keeps it."""
        above = [[path, *identity] for path, identity in self.above.items()]
        sets = {"own": self.own, "closed": self.closed, "parts": self.parts}
        return {"above": above, **{name: [*map(list, pairs)] for name, pairs in sets.items()}}

    @classmethod
    def of(cls, stored: Mapping[str, Sequence[Sequence[object]]]) -> Known:
        """Read it back."""
        own, closed, parts = (
            frozenset((int(str(dev)), int(str(ino))) for dev, ino in stored[name])
            for name in ("own", "closed", "parts")
        )
        above = {str(path): (int(str(dev)), int(str(ino))) for path, dev, ino in stored["above"]}
        return cls(own, above, closed, parts)


Stamp = tuple[int, int, int]
"""Tells a file from another one, and from itself after a change: no command can set it back."""


def stamp_of(place: Path) -> Stamp | None:
    """Return the stamp of what is there now."""
    try:
        status = place.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


@dataclass(frozen=True, slots=True)
class Guarded:
    """The protected places of a tree."""

    protected: tuple[Path, ...]
    """Read-only to every command."""
    hidden: tuple[Path, ...]
    environments: tuple[Path, ...] = ()
    """Installed programs: read-only unless a person approved to install."""
    known: Known = field(default_factory=Known, compare=False)
    unseen: tuple[str, ...] = ()


def guarded(
    root: Path,
    policy: FilePolicy,
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> Guarded:
    """Return the protected places below a root; our own home is not looked through."""
    return _Survey(root, policy, GitGuard(root, environment or {}), home).look()


def bounded(
    root: Path,
    policy: FilePolicy,
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
    *,
    most: float = MOST_GUARDED,
    seen: float = MOST_SEEN,
) -> Guarded:
    """Return the protected places below a root. Raises NoSandbox if they are too many to hold."""
    return _Survey(root, policy, GitGuard(root, environment or {}), home, most, seen).look()


@dataclass(slots=True)
class _Survey:
    """One look through a tree for its protected places."""

    root: Path
    policy: FilePolicy
    git: GitGuard
    home: Path | None = None
    most: float = math.inf
    most_seen: float = math.inf
    protected: list[Path] = field(default_factory=list)
    hidden: list[Path] = field(default_factory=list)
    environments: list[Path] = field(default_factory=list)
    own: set[Identity] = field(default_factory=set)
    above: dict[str, Identity] = field(default_factory=dict)
    parts: set[Identity] = field(default_factory=set)
    seen: int = 0

    def look(self) -> Guarded:
        walked = walk(self.root, self._folder)
        for place in self.git.obeyed():
            if self.root in place.parents and os.path.lexists(place):
                self._note_path(place)
        known = Known(
            frozenset(self.own), self.above, frozenset(walked.opened), frozenset(self.parts)
        )
        hidden, environments = tuple(self.hidden), tuple(self.environments)
        protected = tuple(dict.fromkeys(self.protected))
        return Guarded(protected, hidden, environments, known, tuple(walked.unseen))

    def _folder(self, folder: Folder) -> Iterable[str]:
        here = self.root.joinpath(*folder.parts)
        names, last = folder.names, folder.parts[-1] if folder.parts else ""
        if folder.parts and "pyvenv.cfg" in names:
            self.environments.append(here)
            return ()
        if ".git" in names:
            self.git.learn([here])
        elif is_git_directory(names):
            if folder.parts:
                self.protected.append(here)
                self.own.add(folder.identity)
                return ()
            self._note_all(folder, here, names & OWN)
        self._note_all(folder, here, (n for n in names if kind(self.policy, last, n) == "place"))
        self.parts.update(
            identity for n in names & _GIT_PARTS if (identity := folder.identity_of(n))
        )
        kinds = {n: kind(self.policy, last, n) for n in folder.directories}
        self.environments += [here / n for n, what in kinds.items() if what == "installed"]
        self._count(len(names), counted=last not in GENERATED)
        if last in GENERATED:
            return ()
        return [n for n, what in kinds.items() if what is None and here / n != self.home]

    def _count(self, entries: int, *, counted: bool) -> None:
        # What was not found would lie open to the command, so it does not run at all.
        self.seen += entries if counted else 0
        if len(self.protected) + len(self.hidden) > self.most:
            raise NoSandbox(f"more than {self.most:,} protected places in this tree", fix=_SMALLER)
        if self.seen > self.most_seen:
            raise NoSandbox(f"more than {self.most_seen:,} files in this tree", fix=_SMALLER)

    def _note_all(self, folder: Folder, here: Path, names: Iterable[str]) -> None:
        for name in names:
            if self.most < math.inf and len(str(here)) > _LONGEST_PATH:
                raise NoSandbox("this tree is too deep to hold its protected places", fix=_SMALLER)
            (self.hidden if is_secret(name) else self.protected).append(here / name)
            self._remember(folder, name)

    def _remember(self, folder: Folder, name: str) -> None:
        identity = folder.identity_of(name)
        if identity:
            self.own.add(identity)
            self.above["/".join((*folder.parts, name))] = folder.identity

    def _note_path(self, place: Path) -> None:
        if not any(place == root or root in place.parents for root in self.protected):
            self.protected.append(place)
        with suppress(OSError):
            status, parent = place.lstat(), place.parent.lstat()
            self.own.add((status.st_dev, status.st_ino))
            above = str(place.relative_to(self.root))
            self.above[above] = (parent.st_dev, parent.st_ino)


def kind(policy: FilePolicy, parent: str, name: str) -> str | None:
    """Tell a protected ``place`` from the rest; installed programs are told apart from both."""
    if policy.protects(name):
        return "place"
    asks = policy.asks_name(parent, name)
    if asks is None or asks.obeyed:
        return "place" if asks else None
    return "installed" if plain(name) in ENVIRONMENTS else None


@dataclass(frozen=True, slots=True)
class PutAway:
    """What was moved, where to, and what could not be looked at."""

    places: tuple[str, ...] = ()
    compiled: int = 0
    """Compiled Python that a command left: it would be run in place of its source."""
    quarantine: Path | None = None
    unclean: tuple[str, ...] = ()
    """Places that could not be looked at, or not be moved."""
    built: tuple[Path, ...] = ()
    """Folders of build results."""
    environments: tuple[Path, ...] = ()
    """Folders of installed programs."""

    @property
    def text(self) -> str:
        """Say it to a person; nothing where there is nothing to say."""
        lines = []
        if self.places:
            lines.append(f"protected, so moved away again: {', '.join(self.places[:20])}")
        if self.compiled:
            lines.append(f"compiled Python, moved away: {self.compiled} in {CACHE}")
        if self.quarantine:
            lines.append(f"kept in {self.quarantine}")
        if self.unclean:
            lines.append(f"could not be checked, do not trust it: {', '.join(self.unclean[:20])}")
        return "\n".join(lines)


@dataclass(slots=True)
class Cleaner:
    """Looks through a tree after a command and moves what it may not leave."""

    root: Path
    home: Path
    policy: FilePolicy
    known: Known
    environment: Mapping[str, str]
    since: int
    """When the command started, in nanoseconds."""
    until: float = math.inf
    """What was made after this instant cannot be the command's."""
    caches: bool = True
    """Whether compiled Python is put away: a command in a sandbox is told to make none."""
    written: Mapping[str, Stamp] = field(default_factory=dict)
    """Files that our own tools made meanwhile, and that nobody has changed since."""
    _moved: list[str] = field(default_factory=list)
    _compiled: int = 0
    _unclean: list[str] = field(default_factory=list)
    _quarantine: Path | None = None
    _hooks_here: bool = False
    _built: list[Path] = field(default_factory=list)
    _environments: list[Path] = field(default_factory=list)

    def put_away(self) -> PutAway:
        """Do it; what could not be done is said."""
        git = GitGuard(self.root, self.environment)
        obeyed = [place for place in git.obeyed() if self.root in place.parents]
        self._hooks_here = any(self.root.is_relative_to(place) for place in git.obeyed())
        walked = walk(self.root, self._folder, leave_open=self.known.closed)
        for place in obeyed:
            self._named(place)
        moved, unclean = tuple(sorted(self._moved)), (*walked.unseen, *self._unclean)
        return PutAway(
            moved,
            self._compiled,
            self._quarantine,
            tuple(map(printable_name, unclean)),
            tuple(self._built),
            tuple(self._environments),
        )

    def _folder(self, folder: Folder) -> Iterable[str]:
        names, last = folder.names, folder.parts[-1] if folder.parts else ""
        here = self.root.joinpath(*folder.parts)
        if folder.parts and "pyvenv.cfg" in names:
            self._environments.append(here)
            return ()
        if folder.parts and folder.identity in self.known.own:
            return ()
        gone: set[str] = set()
        for name in names:
            obeyed = is_obeyed(last, name) and kind(self.policy, last, name) == "place"
            hook = self._hooks_here and not folder.parts and name in HOOKS
            if (obeyed or hook) and self._planted(folder, name):
                self._move(folder, name)
                gone.add(name)
        if ".git" not in names - gone and is_git_directory(names):
            # Without those of its parts that are new, git does not take it for a repository.
            for name in names & _GIT_PARTS - gone:
                old = folder.identity_of(name) in self.known.parts
                if not old and not self._late(folder, name):
                    self._move(folder, name)
                    gone.add(name)
        if last == CACHE and self.caches:
            self._sweep(folder)
        if last in GENERATED:
            return ()
        kinds = {n: kind(self.policy, last, n) for n in folder.directories if n not in gone}
        self._environments += [here / n for n, what in kinds.items() if what == "installed"]
        self._built += [here / n for n in kinds if n in BUILD_RESULTS]
        return [n for n, what in kinds.items() if what is None and here / n != self.home]

    def _planted(self, folder: Folder, name: str) -> bool:
        path = "/".join((*folder.parts, name))
        if self.known.holds(path, folder.identity_of(name), folder.identity):
            return False
        return not self._late(folder, name) and not self._is_written(self.root / path)

    def _is_written(self, place: Path) -> bool:
        """Tell whether a place holds nothing but files that our own tools made."""
        if not self.written:
            return False
        files = [place]
        if place.is_dir() and not place.is_symlink():
            entries = (Path(here, name) for here, _, names in os.walk(place) for name in names)
            files = list(islice(entries, len(self.written) + 1))
        stamps = ((str(file.relative_to(self.root)), stamp_of(file)) for file in files)
        return bool(files) and all(
            stamp is not None and self.written.get(path) == stamp for path, stamp in stamps
        )

    def _late(self, folder: Folder, name: str) -> bool:
        """Tell whether all of it was made when the command was long over."""
        if self.until == math.inf:
            return False
        with suppress(OSError):
            changed = [os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_ctime_ns]
            if name in folder.directories:
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder.fd)
                try:
                    with os.scandir(fd) as entries:
                        changed += [e.stat(follow_symlinks=False).st_ctime_ns for e in entries]
                finally:
                    os.close(fd)
            return min(changed) > self.until
        return False

    def _sweep(self, folder: Folder) -> None:
        """Move compiled files that changed since; the time of a change cannot be set back."""
        for name in folder.others:
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                if self.since - _TICK <= status.st_ctime_ns <= self.until:
                    self._move(folder, name, compiled=True)

    def _named(self, place: Path) -> None:
        """Move a place that git's settings name and that was not there."""
        if not os.path.lexists(place):
            return
        fd = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            status = os.fstat(fd)
            parts = place.relative_to(self.root).parts
            is_directory = place.is_dir() and not place.is_symlink()
            folder = Folder(
                parts[:-1],
                fd,
                (status.st_dev, status.st_ino),
                (place.name,) if is_directory else (),
                () if is_directory else (place.name,),
            )
            if self._planted(folder, place.name):
                self._move(folder, place.name)
        finally:
            os.close(fd)

    def _move(self, folder: Folder, name: str, *, compiled: bool = False) -> None:
        path = "/".join((*folder.parts, name))
        places = (self.home / "quarantine", self.root / ".evercontext" / "quarantine")
        for place in places:
            try:
                copy = self._rename(folder, name, place)
            except OSError as error:
                # Another file system: nothing is copied, it stays on its own.
                if error.errno != errno.EXDEV:
                    break
            else:
                self._compiled += compiled
                self._moved += [] if compiled else [printable_name(path)]
                self._note(copy, path)
                return
        self._unclean.append(path)

    def _rename(self, folder: Folder, name: str, place: Path) -> Path:
        stamp = self._quarantine.name if self._quarantine else time.strftime("%Y%m%d-%H%M%S")
        target = place / stamp / f"{name.lstrip('.')[:200]}-{secrets.token_hex(4)}"
        make_private(target.parent)
        try:
            os.rename(name, target, src_dir_fd=folder.fd)
        except PermissionError:
            make_usable(name, folder.fd)
            make_usable(".", folder.fd)
            os.rename(name, target, src_dir_fd=folder.fd)
        self._quarantine = target.parent
        return target

    def _note(self, copy: Path, path: str) -> None:
        """Write down where it came from."""
        with suppress(OSError), (copy.parent / "places.txt").open("a", encoding="utf-8") as file:
            file.write(f"{printable_name(copy.name)}\t{printable_name(str(self.root / path))}\n")
