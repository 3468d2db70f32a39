"""Read and change a tree of files under one policy; every tool uses it.

Blocking; asynchronous callers go through a thread. Paths are strings relative to the root, checked
here; errors are those of ``evercontext.errors``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from evercontext.domain.message import Image
from evercontext.errors import AlreadyExists, Changed, NotFound, ReadOnlyTree
from evercontext.files import file_io, images
from evercontext.files.contained_paths import Root, SafePath
from evercontext.files.directory_listing import Check, Listing, go_on, list_directory
from evercontext.files.file_io import Content
from evercontext.files.journal import Change, Journal, JournalStep
from evercontext.files.journal_recovery import Recovery, open_journal
from evercontext.files.os_errors import explained
from evercontext.files.path_names import parse
from evercontext.files.policy import FilePolicy
from evercontext.files.text_search import TextMatches, search

Renew = Callable[[Content | None], bytes | None]
_MAX_RACES = 16
_MAX_REPLACED = 1 << 24


class WriteMode(StrEnum):
    """What a write does about an existing file."""

    CREATE = "create"
    OVERWRITE = "overwrite"
    APPEND = "append"


@dataclass(frozen=True, slots=True)
class FileText:
    """A text file as it was read."""

    path: str
    content: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """A change: the text before and after, ``None`` where there is no file.

    Bytes that were no text are shown with replacement characters.
    """

    path: str
    before: str | None
    after: str | None
    sha256: str | None
    created: bool = False


@dataclass(slots=True)
class Tree:
    """The files below a root, as one policy allows. Without a journal it is read-only."""

    root: Root
    policy: FilePolicy
    journal: Journal | None = None
    recovery: Recovery = field(default_factory=Recovery)

    @classmethod
    def open(cls, path: Path | str, policy: FilePolicy, home: Path | None = None) -> Tree:
        """Pin the directory ``path``; with a home folder for the journal it can be written."""
        root = Root.open(path)
        if home is None:
            return cls(root, policy)
        journal, recovery = open_journal(root, home)
        return cls(root, policy, journal, recovery)

    def under(self, policy: FilePolicy) -> Self:
        """The same tree under another policy."""
        return replace(self, policy=policy)

    def read(self, path: str) -> FileText:
        """Read a whole UTF-8 file within the size limit."""
        with explained(), self.root.file(path, self.policy) as safe:
            content = file_io.read(safe, self.policy)
            return FileText(safe.relative, content.text(), content.sha256, len(content.data))

    def read_image(self, path: str) -> Image:
        """Read a picture of the tree, known by its content."""
        # Which texts may be read says nothing of pictures: these are known by their bytes.
        policy = replace(self.policy, max_bytes=images.MOST_BYTES, extensions=None)
        with explained(), self.root.file(path, policy) as safe:
            return images.image_of(safe.name, file_io.read(safe, policy).data)

    def list(
        self,
        path: str = ".",
        *,
        extensions: Iterable[str] | None = None,
        max_items: int | None = None,
        recursive: bool = False,
        check: Check = go_on,
    ) -> Listing:
        """List a directory, leaving out what the policy refuses."""
        return list_directory(
            self.root,
            path,
            self.policy,
            extensions=extensions,
            max_items=max_items,
            recursive=recursive,
            check=check,
        )

    def write(
        self,
        path: str,
        content: str,
        mode: WriteMode = WriteMode.OVERWRITE,
        *,
        trace_id: str,
        if_match: str | None = None,
        step: JournalStep | None = None,
    ) -> Written:
        """Create, replace or extend a text file, durably and whole; parents are made.

        ``if_match`` is the hash of the content the caller knows: Changed if it is another one.
        """
        renew = self._renewal(content, mode)
        return self._change(path, renew, trace_id, if_match, step, create=mode is WriteMode.CREATE)

    def preview(
        self, path: str, content: str | None, mode: WriteMode = WriteMode.OVERWRITE
    ) -> Written:
        """Return what a write, or for no content a delete, would do; the same errors are raised."""
        renew = _remove if content is None else self._renewal(content, mode)
        with explained(writing=True), self.root.target(path, self.policy) as safe:
            if mode is WriteMode.CREATE and file_io.is_link(safe):
                raise AlreadyExists("file exists")
            before = file_io.read_if_there(safe, self._replaceable())
            after = renew(before)
            sha256 = None if after is None else file_io.digest(after)
            return _written(safe, before, after, sha256)

    def search(self, directory: str, keyword: str, check: Check = go_on) -> TextMatches:
        """Return the files below a directory that contain a text."""
        return search(self.root, directory, keyword, self.policy, check)

    def delete(
        self,
        path: str,
        *,
        trace_id: str,
        if_match: str | None = None,
        step: JournalStep | None = None,
    ) -> Written:
        """Remove a file; its content stays in the journal."""
        return self._change(path, _remove, trace_id, if_match, step)

    def move(
        self, old: str, new: str, *, trace_id: str, step: JournalStep | None = None
    ) -> tuple[Written, Written]:
        """Give a file another name that is free; both names change together."""
        journal = self.writable()
        names = ["/".join(parse(path)) for path in (old, new)]
        with (
            journal.locks.hold(names),
            explained(writing=True),
            self.root.target(old, self.policy) as source,
            self.root.target(new, self.policy) as target,
        ):
            before = file_io.read(source, self.policy)
            if file_io.exists(target):
                raise AlreadyExists("file exists", fix="Choose a free name")
            changes = [Change(target, None, before.data, before.mode), Change(source, before, None)]
            created, gone = journal.apply(changes, trace_id, step)
            text = _text(before)
            return (
                Written(gone.path, text, None, None),
                Written(created.path, None, text, before.sha256, created=True),
            )

    def writable(self) -> Journal:
        """Return the journal; ReadOnlyTree if there is none."""
        if self.journal is None:
            raise ReadOnlyTree("read-only", fix="This tree was opened without a journal")
        return self.journal

    def close(self) -> None:
        """Let journal and root go."""
        if self.journal:
            self.journal.close()
        self.root.close()

    def _change(
        self,
        path: str,
        renew: Renew,
        trace_id: str,
        if_match: str | None,
        step: JournalStep | None,
        *,
        create: bool = False,
    ) -> Written:
        journal = self.writable()
        with journal.locks.hold(["/".join(parse(path))]):
            for attempt in range(_MAX_RACES):
                try:
                    with self.root.target(path, self.policy) as safe, explained(writing=True):
                        if create and file_io.is_link(safe):
                            raise AlreadyExists("file exists")
                        return self._change_once(journal, safe, renew, trace_id, if_match, step)
                except (AlreadyExists, Changed):
                    # somebody outside was quicker: with nothing promised about it, look again
                    if create or if_match is not None or attempt == _MAX_RACES - 1:
                        raise
        raise AssertionError("the last attempt returns or raises")

    def _change_once(
        self,
        journal: Journal,
        safe: SafePath,
        renew: Renew,
        trace_id: str,
        if_match: str | None,
        step: JournalStep | None,
    ) -> Written:
        before = file_io.read_if_there(safe, self._replaceable())
        if if_match is not None and if_match != (before.sha256 if before else None):
            raise Changed("changed", fix="Read the file again")
        after = renew(before)
        change = Change(safe, before, after, before.mode if before else None)
        (entry,) = journal.apply([change], trace_id, step)
        return _written(safe, before, after, entry.after)

    def _renewal(self, content: str, mode: WriteMode) -> Renew:
        data = file_io.encode(content)
        self.policy.check_size(len(data))

        def renew(before: Content | None) -> bytes:
            if before is not None and mode is WriteMode.CREATE:
                raise AlreadyExists("file exists", fix="Edit it, or write in overwrite mode")
            if mode is WriteMode.APPEND and before is not None:
                before.text()  # text after bytes that are no text would be neither
                self.policy.check_size(len(before.data) + len(data))
                return before.data + data
            return data

        return renew

    def _replaceable(self) -> FilePolicy:
        """What is replaced may be larger than what may be written: it only goes to the journal."""
        return replace(self.policy, max_bytes=max(self.policy.max_bytes, _MAX_REPLACED))


def _remove(before: Content | None) -> None:
    if before is None:
        raise NotFound("no such file or directory")


def _written(
    safe: SafePath, before: Content | None, after: bytes | None, sha256: str | None
) -> Written:
    text = None if after is None else file_io.decode(after)
    return Written(safe.relative, _text(before), text, sha256, created=before is None)


def _text(content: Content | None) -> str | None:
    if content is None:
        return None
    return content.data.decode("utf-8", "replace")
