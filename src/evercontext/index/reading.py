"""Read a file of the tree for the index or for a snippet: contained, bounded, without secrets."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from evercontext.errors import EverContextError, NotUtf8
from evercontext.events.redact import MASK, Redactor
from evercontext.files import io
from evercontext.files.failures import explained
from evercontext.files.paths import Root
from evercontext.files.policy import FilePolicy
from evercontext.index.chunker import DEEPEST_LINE
from evercontext.index.languages import language_of

# Plain pieces, because looking for each is several times quicker than one pattern for all.
_BEGIN = "-----BEGIN"
_MARKS = (
    _BEGIN, "sk-", "pk-", "rk-", "kk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "xox", "hf_", "AKIA", "ASIA", "AIza", "npm_", "eyJ", "earer ",
)  # fmt: skip
_ANYWHERE = frozenset({_BEGIN, "earer "})
"""Those that may stand inside a word; a ``task-`` is no ``sk-``."""
_SECRET_WORDS = ("key", "secret", "token", "passw", "credential")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_ASSIGNED = re.compile(r"([:=]\s{0,4}[\"'])([^\"'\s]{12,200})(?=[\"'])")
_SECRET_NAME = re.compile(r"(?i)(?:api[_-]?key|secret|token|passw(?:or)?d|credential)\w*[\"']?\s*$")
_NAME_LENGTH = 48
_SETTINGS = frozenset({"yaml", "toml", "ini", "bash", "text"})
"""Kinds of files in which a value needs no quotes."""
_SETTING = re.compile(
    r"(?im)^([ \t]*(?:-[ ]+|export[ ]+|env[ ]+|arg[ ]+)?[\w.-]{0,60}?"
    r"(?:secret|token|passwd|password|credential|(?:api|access|private)[_-]?key)s?"
    r"(?:[-_.][\w.-]{1,40})?[ \t]*[:=][ \t]*)(?![\"'$<{\[|>])[^\s#]{8,}"
)


@dataclass(frozen=True, slots=True)
class Source:
    """A text as it may be indexed and shown."""

    text: str
    content: str
    """The key of the content: its hash and its language."""
    size: int


class Unfit(Exception):
    """A file that is left out, and why."""


class Reader:
    """Reads files of one root under one policy."""

    def __init__(self, root: Root, policy: FilePolicy, redactor: Redactor | None = None) -> None:
        self._root = root
        self._policy = policy
        self._redactor = redactor or Redactor()

    def read(self, path: str) -> Source:
        """Return a file's text; raise ``Unfit`` for what is no text or may not be read."""
        return self.source(path, self.load(path))

    def load(self, path: str) -> bytes:
        """Return a file's bytes; raise ``Unfit`` for what may not be read."""
        try:
            with explained(), self._root.file(path, self._policy) as safe:
                return io.load(safe, self._policy)
        except EverContextError as problem:
            raise Unfit(str(problem)) from None

    def source(self, path: str, data: bytes) -> Source:
        """Return bytes as a text that may be indexed, wherever they came from."""
        try:
            text = io.decode(data)
        except NotUtf8 as problem:
            raise Unfit(problem.message) from None
        if max(map(len, text.split("\n"))) > DEEPEST_LINE:
            raise Unfit(f"a line of more than {DEEPEST_LINE} characters")
        key = hashlib.sha256(data).hexdigest()[:40] + ":" + (language_of(path) or "text")
        return Source(self._redacted(path, text), key, len(data))

    def show(self, path: str, first: int, last: int) -> str:
        """Return some lines of a file as they are now, without secrets."""
        try:
            text = io.decode(self.load(path))
        except NotUtf8 as problem:
            raise Unfit(problem.message) from None
        lines = text.split("\n", last)
        until = len(text) - len("".join(lines[last:]))
        # Of several lines, and some of its lines do not look like it; what begins later is no harm.
        if (
            text.find("PRIVATE KEY", 0, until) >= 0
            or self._redactor.without_known(text) is not text
        ):
            lines = self._redacted(path, text).split("\n", last)
        return self._redacted(path, "\n".join(lines[first - 1 : last]))

    def _redacted(self, path: str, text: str) -> str:
        if _is_settings(path):
            text = _SETTING.sub(rf"\1{MASK}", text)
        return self.redact(text)

    def redact(self, text: str) -> str:
        """Mask credentials and keep every line where it is."""
        text = self._redactor.without_known(text)
        text = _ASSIGNED.sub(_mask_assigned, text)
        if _BEGIN in text:
            text = _PRIVATE_KEY.sub(lambda m: MASK + "\n" * m[0].count("\n"), text)
        kept: list[str] = []
        done = 0
        for first, last in _marked_lines(text):
            kept += (text[done:first], self._redactor.text(text[first:last]))
            done = last
        return "".join((*kept, text[done:]))


@lru_cache(maxsize=4096)
def _is_settings(path: str) -> bool:
    return language_of(path) in _SETTINGS


def _marked_lines(text: str) -> list[tuple[int, int]]:
    """Return begin and end of the lines that hold what some kind of credential begins with."""
    lines: dict[int, int] = {}
    for mark in _MARKS:
        at = text.find(mark)
        while at >= 0:
            before = text[at - 1 : at]
            if (before.isalnum() or before == "_") and mark not in _ANYWHERE:
                at = text.find(mark, at + 1)
                continue
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            lines[text.rfind("\n", 0, at) + 1] = end
            at = text.find(mark, end)
    return sorted(lines.items())


def _mask_assigned(found: re.Match[str]) -> str:
    """Mask a quoted value if the name it is given to says that it is a secret."""
    before = found.string[max(0, found.start() - _NAME_LENGTH) : found.start()]
    lower = before.lower()
    # A plain loop: every quoted value of a tree comes by, and a generator costs as much again.
    for word in _SECRET_WORDS:
        if word in lower:
            return found[1] + MASK if _SECRET_NAME.search(before) else found[0]
    return found[0]
