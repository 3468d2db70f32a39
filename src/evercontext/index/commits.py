"""Read what git has committed below one root: paths and their bytes.

A commit's tree is what was staged, byte for byte, however it was staged (``add -p``, ``commit
--only``, ``commit -a`` and a hook that restages included). Reading it after the commit leaves
nothing to take back when a commit is aborted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.index.git_queries import ask_git, in_git

_DIFFERENCE = ("diff-tree", "-r", "-z", "--no-renames", "--relative")
_FILE_MODES = (b"100644", b"100755")
_AT_ONCE = 16 * 1024 * 1024
"""Bytes of blobs that are asked for in one answer."""
_LINE = 128
"""More than git's line about one object, which is its name, kind and size."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A path as a commit left it."""

    path: str
    blob: str | None
    """Git's name of the content; ``None``: the commit has no such file."""


@dataclass(slots=True)
class Difference:
    """What one commit has otherwise than another, in the words of ``POST /ingest``."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.added) + len(self.modified) + len(self.deleted) + len(self.renamed)

    def limited_to(self, wants: Callable[[str], bool]) -> Difference:
        """Return what concerns wanted paths; a rename into or out of them is half of one."""
        limited = Difference(
            added=[path for path in self.added if wants(path)],
            modified=[path for path in self.modified if wants(path)],
            deleted=[path for path in self.deleted if wants(path)],
        )
        for old, new in self.renamed:
            if wants(old) and wants(new):
                limited.renamed.append((old, new))
            elif wants(old):
                limited.deleted.append(old)
            elif wants(new):
                limited.added.append(new)
        return limited

    def as_json(self) -> dict[str, Any]:
        """Return it as the route takes it."""
        renamed = [{"from": old, "to": new} for old, new in self.renamed]
        lists = {"added": self.added, "modified": self.modified, "deleted": self.deleted}
        return {**lists, "renamed": renamed}


def blob_name(data: bytes, like: str) -> str:
    """Return git's name of a content, in the kind of hash that ``like`` has."""
    kind = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Commits:
    """The commits of the repository that a root lies in."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def head(self) -> str | None:
        """Return the name of the last commit; ``None`` without one, or outside git."""
        if not in_git(self._root):
            return None
        done = await ask_git(self._root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return done.text.strip() if done is not None and done.exit_code == 0 else None

    async def changes(self, since: str, until: str) -> list[Staged] | None:
        """Return what differs between two commits; ``None`` if one of them is not there."""
        done = await ask_git(self._root, *_DIFFERENCE, "--end-of-options", since, until, "--")
        if done is None or done.exit_code != 0:
            return None
        parts = done.stdout.split(b"\0")
        return list(_differences(parts[0::2], parts[1::2]))

    async def difference(self, since: str | None, until: str) -> Difference:
        """Return what differs, renames as such; without a known ``since`` everything is new."""
        arguments = ("diff-tree", "-r", "-z", "-M", "--name-status", "--relative")
        listing = None
        if since:
            listing = await ask_git(self._root, *arguments, "--end-of-options", since, until, "--")
        if listing is None or listing.exit_code != 0:
            return Difference(added=[staged.path for staged in await self.tree(until) or ()])
        return _named(listing.stdout.split(b"\0"))

    async def tree(self, commit: str) -> list[Staged] | None:
        """Return every file of a commit below the root."""
        done = await ask_git(self._root, "ls-tree", "-r", "-z", commit)
        if done is None or done.exit_code != 0:
            return None
        return list(_entries(done.stdout.split(b"\0")))

    async def read(self, blobs: Sequence[str], largest: int) -> dict[str, bytes]:
        """Return the contents of blobs; one that is missing or larger than ``largest`` is not."""
        names = "\n".join(dict.fromkeys(blobs)).encode() + b"\n"
        most = _LINE * (len(blobs) + 1)
        done = await ask_git(self._root, "cat-file", "--batch-check", stdin=names, most=most)
        contents: dict[str, bytes] = {}
        for part in _parts(_sizes(done.stdout if done else b""), largest):
            object_names = "\n".join(name for name, _ in part).encode() + b"\n"
            most = sum(size + _LINE for _, size in part)
            answer = await ask_git(self._root, "cat-file", "--batch", stdin=object_names, most=most)
            contents.update(_contents(answer.stdout if answer else b""))
        return contents


def _differences(heads: Iterable[bytes], paths: Iterable[bytes]) -> Iterator[Staged]:
    for head, raw in zip(heads, paths, strict=False):
        path = _decoded(raw)
        fields = head.lstrip(b":").split(b" ")
        if path is None or len(fields) < 5:
            continue
        there = fields[1] in _FILE_MODES
        yield Staged(path, fields[3].decode() if there else None)


def _named(parts: list[bytes]) -> Difference:
    difference = Difference()
    lists = {b"A": difference.added, b"D": difference.deleted}
    rest = iter(parts)
    for status in rest:
        path = _decoded(next(rest, b""))
        if status[:1] == b"R":
            new = _decoded(next(rest, b""))
            if path and new:
                difference.renamed.append((path, new))
        elif path:
            lists.get(status[:1], difference.modified).append(path)
    return difference


def _entries(lines: Iterable[bytes]) -> Iterator[Staged]:
    for line in lines:
        head, _, raw = line.partition(b"\t")
        fields, path = head.split(b" "), _decoded(raw)
        if path and len(fields) == 3 and fields[0] in _FILE_MODES:
            yield Staged(path, fields[2].decode())


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _sizes(out: bytes) -> Iterator[tuple[str, int]]:
    for line in out.decode("ascii", "replace").splitlines():
        fields = line.split(" ")
        if len(fields) == 3 and fields[1] == "blob":
            yield fields[0], int(fields[2])


def _parts(sizes: Iterable[tuple[str, int]], largest: int) -> Iterator[list[tuple[str, int]]]:
    part: list[tuple[str, int]] = []
    total = 0
    for name, size in sizes:
        if size > largest:
            continue
        if part and total + size > _AT_ONCE:
            yield part
            part, total = [], 0
        part.append((name, size))
        total += size
    if part:
        yield part


def _contents(out: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while (end := out.find(b"\n", at)) >= 0:
        fields = out[at:end].split(b" ")
        if len(fields) != 3:
            at = end + 1
            continue
        size = int(fields[2])
        yield fields[0].decode(), out[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
