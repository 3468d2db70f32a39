"""Find the directories of git, and the files it reads settings from or runs.

A git directory need not be called ``.git``: a ``gitdir:`` line, a common directory, a separate or
bare repository lead elsewhere. So a directory is taken for git's as git does it, by its shape, and
hooks and included settings are looked up in the configuration. A condition of ``includeIf`` counts
as fulfilled: it may be, later.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.errors import ProtectedPath

MAX_CONFIG = 1 << 20
_MAX_INCLUDES = 50
HEAD, COMMON, STORES = "HEAD", "commondir", frozenset({"objects", "refs"})
_OWN_TEXT = """
    HEAD ORIG_HEAD FETCH_HEAD MERGE_HEAD branches commondir config config.worktree description
    gitdir hooks index info logs modules objects packed-refs refs rr-cache shallow worktrees
"""
OWN = frozenset(_OWN_TEXT.split())
"""What git keeps at the top of a git directory."""
_HOOKS_TEXT = """
    applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit
    post-index-change post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc
    pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg proc-receive
    push-to-checkout reference-transaction sendemail-validate update
"""
HOOKS = frozenset(_HOOKS_TEXT.split())
_PROGRAM_KEYS_TEXT = """
    askpass clean cmd command driver editor fsmonitor gitproxy helper pager process program
    receivepack smudge sshcommand textconv uploadpack
"""
_PROGRAM_KEYS = frozenset(_PROGRAM_KEYS_TEXT.split())
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*))?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}

Stamp = tuple[int, int, int] | None


def is_git_directory(names: Iterable[str]) -> bool:
    """Tell by the names in a directory whether git would take it for one of its own."""
    present = frozenset(names)
    return HEAD in present and (COMMON in present or present >= STORES)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What git obeys outside its directories, for one work tree."""

    places: Mapping[Path, str]
    """Each file or directory, and why."""
    directories: tuple[Path, ...]
    """The git directory, and the one it has in common with other work trees."""
    sources: Mapping[Path, Stamp]
    """The files that this was read from, as they were."""
    filters: frozenset[str] = frozenset()
    """The names of programs that git would pass files through."""

    @property
    def current(self) -> bool:
        """True while none of the sources has changed."""
        return all(_stamp(path) == stamp for path, stamp in self.sources.items())


def resolve(top: Path, environment: Mapping[str, str]) -> Resolved | None:
    """Return what git obeys for the work tree at ``top``; nothing if there is none."""
    entry = top / ".git"
    directory = entry if entry.is_dir() else _pointed_at(entry, "gitdir:", top)
    if directory is None and is_git_directory(_names(top)):
        directory = top
    if directory is None:
        return None
    common = _pointed_at(directory / COMMON, "", directory) or directory
    reading = _Reading(top, environment, sources={entry: _stamp(entry)})
    reading.note(directory / COMMON)
    for file in (common / "config", directory / "config.worktree", *_outer(environment)):
        reading.read(file, inside=file.parent in (common, directory))
    for key, value in _from_environment(environment):
        reading.take(key, value, top)
    filters = frozenset(reading.filters)
    return Resolved(reading.places, (directory, common), reading.sources, filters)


def remotes(top: Path) -> dict[str, str]:
    """Return the addresses of a work tree's remotes by their names, as its own settings say."""
    entry = top / ".git"
    directory = entry if entry.is_dir() else _pointed_at(entry, "gitdir:", top)
    if directory is None:
        return {}
    common = _pointed_at(directory / COMMON, "", directory) or directory
    addresses: dict[str, str] = {}
    for key, value in parse_config(_text(common / "config")):
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "remote" and setting == "url" and value:
            addresses.setdefault(name, value)
    return addresses


class GitGuard:
    """Judges places of one tree by what git makes of them."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment
        self._known: dict[Path, Resolved | None] = {}
        self._tops: set[Path] = set(enclosing(root))

    def learn(self, tops: Iterable[Path]) -> None:
        """Take further work trees into account, wherever in the tree they lie."""
        self._tops.update(tops)

    def check(self, parts: tuple[str, ...]) -> str | None:
        """Return why a change there asks; ProtectedPath if git's own directories would change."""
        self._check_directories(parts)
        target = self._root.joinpath(*parts)
        for place, reason in self.obeyed().items():
            if target == place or place in target.parents:
                return reason
            if self._root.is_relative_to(place) and len(parts) == 1 and parts[0] in HOOKS:
                return reason
        return None

    def obeyed(self) -> dict[Path, str]:
        """Return the places that git obeys, of every work tree known here."""
        places: dict[Path, str] = {}
        for top in tuple(self._tops):
            known = self._known.get(top)
            if top not in self._known or (known and not known.current):
                known = self._known[top] = resolve(top, self._environment)
            if known is None:
                self._known.pop(top, None)
            else:
                places |= known.places
        return places

    def directories(self) -> set[Path]:
        """Return the git directories of every work tree known here."""
        self.obeyed()
        known = (resolved for resolved in self._known.values() if resolved)
        return {path for resolved in known for path in resolved.directories}

    def _check_directories(self, parts: tuple[str, ...]) -> None:
        inside = False
        for depth, name in enumerate(parts):
            here = self._root.joinpath(*parts[:depth])
            if _exists(here / ".git"):
                inside = False
                self._tops.add(here)
            elif _looks_like_git(here):
                inside = depth > 0 or name in OWN
            if inside:
                raise ProtectedPath("protected path: inside a git directory")
            if _completes(here, name, is_last=depth == len(parts) - 1):
                raise ProtectedPath("protected path: it would make this folder a git directory")


def enclosing(root: Path) -> Iterator[Path]:
    """Yield the work trees that a directory lies in, its own first."""
    for place in (root, *root.parents):
        if _exists(place / ".git") or _looks_like_git(place):
            yield place


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _looks_like_git(place: Path) -> bool:
    """As ``is_git_directory``, for a directory that need not be listed."""
    if not _exists(place / HEAD):
        return False
    return _exists(place / COMMON) or all(_exists(place / name) for name in STORES)


def _completes(folder: Path, name: str, *, is_last: bool) -> bool:
    """Tell whether a new entry would make git take a folder for a repository."""
    kinds = {HEAD.lower(): HEAD, COMMON: COMMON} if is_last else {store: store for store in STORES}
    added = kinds.get(name.lower())
    if added is None or not folder.is_dir():
        return False
    present = {own for own in (HEAD, COMMON, *STORES) if _exists(folder / own)}
    return is_git_directory({*present, added}) and not is_git_directory(present)


@dataclass(slots=True)
class _Reading:
    """Settings as they are read, file by file."""

    top: Path
    environment: Mapping[str, str]
    sources: dict[Path, Stamp] = field(default_factory=dict)
    places: dict[Path, str] = field(default_factory=dict)
    filters: set[str] = field(default_factory=set)

    def note(self, file: Path) -> None:
        self.sources[file] = _stamp(file)

    def read(self, file: Path, *, inside: bool) -> None:
        """Read a file and what it includes; one outside of git's directories is obeyed itself."""
        if file in self.sources or len(self.sources) > _MAX_INCLUDES:
            return
        self.note(file)
        if not inside:
            self._add(file, "git reads settings from it, and runs what they name")
        for key, value in parse_config(_text(file)):
            self.take(key, value, file.parent)

    def take(self, key: str, value: str, folder: Path) -> None:
        """Take one setting into account; included files are relative to ``folder``."""
        section, _, name = key.partition(".")
        filtered, _, name = name.rpartition(".")
        if section == "filter":
            self.filters.add(filtered)
        if section in ("include", "includeif") and name == "path":
            self.read(self._path(value, folder), inside=False)
        elif key == "core.hookspath":
            self._add(self._path(value, self.top), "git runs the hooks in it")
        elif key == "core.attributesfile":
            self._add(self._path(value, self.top), "git passes files through programs by it")
        elif name in _PROGRAM_KEYS or section in ("alias", "pager"):
            for word in _words(value):
                path = self._path(word, self.top)
                if "/" in word or path.is_file():
                    self._add(path, "git runs it, by its settings")

    def _add(self, path: Path, reason: str) -> None:
        self.places.setdefault(path, reason)
        with suppress(OSError, RuntimeError):
            self.places.setdefault(path.resolve(), reason)

    def _path(self, value: str, folder: Path) -> Path:
        home = self.environment.get("HOME")
        if home and value.startswith("~/"):
            return Path(home, value[2:])
        return Path(os.path.normpath(folder / value))


def parse_config(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a configuration file: ``section.sub.key``, value."""
    section = ""
    for line in _logical_lines(text):
        rest = line.strip()
        while header := _SECTION.match(rest):
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            rest = rest[header.end() :].strip()
        setting = _KEY.match(rest)
        if setting and section:
            yield f"{section}.{setting[1].lower()}", _value(setting[2] or "")


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for line in text.splitlines():
        if not pending and line.lstrip().startswith(("#", ";")):
            continue
        pending += line
        backslashes = len(pending) - len(pending.rstrip("\\"))
        if backslashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    yield pending


def _value(raw: str) -> str:
    value, quoted, at = "", False, 0
    raw = raw.strip()
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            at += 1
            value += _ESCAPES.get(raw[at : at + 1], raw[at : at + 1])
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            return value.rstrip()
        else:
            value += char
        at += 1
    return value


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command.removeprefix("!"))
    except ValueError:
        words = command.removeprefix("!").split()
    return [word for word in words if word and not word.startswith("-") and "\0" not in word]


def _outer(environment: Mapping[str, str]) -> Iterator[Path]:
    """The settings of the user and the machine."""
    home = environment.get("HOME", "")
    named = environment.get("GIT_CONFIG_GLOBAL")
    if named:
        yield Path(named)
    elif home:
        yield Path(home, ".gitconfig")
        yield Path(environment.get("XDG_CONFIG_HOME") or f"{home}/.config", "git/config")
    yield Path(environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    count = environment.get("GIT_CONFIG_COUNT", "")
    for number in range(min(int(count), 100) if count.isascii() and count.isdigit() else 0):
        key = environment.get(f"GIT_CONFIG_KEY_{number}", "").lower()
        yield key, environment.get(f"GIT_CONFIG_VALUE_{number}", "")


def _pointed_at(file: Path, prefix: str, folder: Path) -> Path | None:
    """Return the directory that a one-line file names."""
    text = _text(file)
    if not text.startswith(prefix) or not text.strip():
        return None
    return Path(os.path.normpath(folder / text.removeprefix(prefix).strip()))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _text(file: Path) -> str:
    """Read a small regular file; anything else is empty."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with os.fdopen(fd, "rb") as stream:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return stream.read(MAX_CONFIG).decode("utf-8", "surrogateescape")


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
