"""What a small task says: which files it may mean, and which of its words may be written.

Everything here is derived from the task and the names in the tree, by rules anyone can read. A
135M model invents paths; these candidates are what the grammar lets it choose from.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from evercontext.models.embedded.gloss import to_english

KINDS: Mapping[str, str] = {
    ".py": "python",
    ".txt": "text",
    ".md": "markdown",
    ".json": "json",
    ".js": "javascript",
    ".sh": "shell",
    ".html": "html",
}
"""The endings this model has examples for, and the kind of content each one holds."""

_ENTRY_FILES = {
    "python": "main.py",
    "text": "notes.txt",
    "markdown": "README.md",
    "json": "config.json",
    "javascript": "main.js",
    "shell": "main.sh",
    "html": "index.html",
}
_KIND_WORDS = (
    ("json", r"json"),
    ("html", r"html|web ?page"),
    ("javascript", r"javascript|node(\.?js)?"),
    ("shell", r"shell|bash"),
    ("markdown", r"markdown|readme|heading|document"),
    ("text", r"text file|notes?|memo"),
)
_ENDINGS = "|".join(
    [
        "py",
        "txt",
        "md",
        "json",
        "js",
        "sh",
        "html",
        "css",
        "toml",
        "yaml",
        "yml",
        "csv",
        "ini",
        "cfg",
        "rs",
        "go",
        "ts",
        "tsx",
        "jsx",
        "c",
        "h",
        "cpp",
        "java",
        "rb",
        "sql",
        "xml",
        "svg",
        "pyi",
        "rst",
        "log",
        "env",
        "lock",
        "exe",
    ]
)
_NAMED_FILE = re.compile(rf"(?<![\w/.-])(?:[\w.-]+/)*[\w.-]*\w\.(?:{_ENDINGS})(?![\w/])", re.I)
_NAMED_FOLDER = re.compile(
    r"(?:\b(?:in|into|inside|under)\s+(?:the\s+|a\s+|folder\s+|directory\s+)*"
    r"(?P<after>(?:[\w-]+/)*[\w-]+)/?(?![\w.]*\.\w))"
    r"|(?P<before>(?:[\w-]+/)*[\w-]+)/?\s+(?:folder|directory)\b"
    r"|(?P<slash>(?:[\w-]+/)+)(?![\w.])",
    re.I,
)
_NOT_FOLDERS = frozenset(
    [
        "a",
        "an",
        "the",
        "it",
        "that",
        "this",
        "python",
        "javascript",
        "english",
        "japanese",
        "markdown",
        "json",
        "html",
        "text",
        "file",
        "files",
        "which",
        "number",
        "numbers",
        "order",
        "print",
        "prints",
        "program",
        "script",
        "one",
        "two",
        "new",
        "my",
        "your",
        "our",
        "me",
        "us",
        "be",
        "do",
        "say",
        "says",
        "root",
        "project",
        "it's",
        "folder",
        "directory",
        "current",
        "function",
    ]
)
_FUNCTION = re.compile(r"\b(functions?|def|method|class)\b", re.I)
_FUNCTION_NAME = re.compile(
    r"\b(?P<called>[A-Za-z_]\w*)\(|\bfunction\s+(?:called\s+|named\s+)?(?P<named>[A-Za-z_]\w*)\b"
)
_NOT_NAMES = frozenset({"that", "which", "to", "in", "for", "with", "returning", "returns", "and"})
_RANGE = re.compile(r"\b(from|numbers?) \d+ to \d+", re.I)
_RESULT = re.compile(
    r"\b(sum|total|product|difference|quotient) of \d+ and \d+"
    r"|\d+ ?(plus|minus|times|divided by|multiplied by|[-+*/]) ?\d+",
    re.I,
)
_MAKING = re.compile(
    r"\b(create|make|write|add|put|generate|build|implement|define|save|store|update|change|replace|"
    r"set|need|want|prints?|printing|program|script|hello world)\b",
    re.I,
)
_ASKING = re.compile(
    r"\b(what|why|how|which|who|where|does|is|explain|describe|summari[sz]e|read|show|list|tell)\b|\?",
    re.I,
)
_LONGEST_PHRASE = 8
_MOST_WORDS = 48


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task as the tiny model is given it."""

    english: str
    named: tuple[str, ...]
    """Files the task names, whether they exist or not."""
    writable: tuple[str, ...]
    """Where the answer may go: the named files, or a folder's conventional entry file."""
    phrases: tuple[str, ...]
    """Runs of words of the task, without paths: what may be quoted in a file."""
    wants_function: bool
    function: str | None
    """The name of that function, where the task gives one."""
    numbers: Literal["range", "result"] | None
    """The task asks for counting or for a result, not for a text."""
    wants_file: bool
    """The task asks for something to be written."""
    asks: bool
    """The task asks a question about what is there."""

    @property
    def words(self) -> tuple[str, ...]:
        """The single words among the phrases."""
        return tuple(phrase for phrase in self.phrases if " " not in phrase)


def read(text: str, tree: Iterable[str] = (), root_name: str = "") -> Assignment:
    """Return what ``text`` asks for, in a project that holds the files of ``tree``."""
    english = to_english(text)
    files = tuple(tree)
    inside = _Root(root_name, files)
    asks = _ASKING.search(english) is not None and _MAKING.search(english) is None
    named = tuple(dict.fromkeys(inside.path(found) for found in _named_files(english)))
    folder = None if named else _named_folder(english, inside)
    return Assignment(
        english=english,
        named=named,
        writable=named or (_entry_file(english, folder, inside),),
        phrases=_phrases(english, folder),
        wants_function=_FUNCTION.search(english) is not None,
        function=_function_name(english),
        numbers=_numbers(_NAMED_FILE.sub("", english)),
        wants_file=_MAKING.search(english) is not None or (bool(named) and not asks),
        asks=asks,
    )


def kind_of(path: str) -> str | None:
    """Return the kind of content a path holds, or ``None`` if the model has no example of it."""
    return KINDS.get(PurePosixPath(path).suffix.lower())


@dataclass(frozen=True, slots=True)
class _Root:
    """The project's folder: its own name in a task means the root itself (E34)."""

    name: str
    files: tuple[str, ...]

    def path(self, named: str) -> str:
        while named.startswith("./"):
            named = named[2:]
        own = f"{self.name}/"
        if self.name and named.startswith(own) and not self.holds(self.name):
            return named[len(own) :]
        return named

    def holds(self, folder: str) -> bool:
        return any(file.startswith(f"{folder}/") for file in self.files)


def _numbers(english: str) -> Literal["range", "result"] | None:
    if _RANGE.search(english):
        return "range"
    return "result" if _RESULT.search(english) else None


def _function_name(english: str) -> str | None:
    for found in _FUNCTION_NAME.finditer(english):
        name = found["called"] or found["named"]
        if name not in _NOT_NAMES and name not in dir(builtins):
            return name
    return None


def _named_files(english: str) -> list[str]:
    return [found.group().rstrip(".") for found in _NAMED_FILE.finditer(english)]


def _named_folder(english: str, inside: _Root) -> str | None:
    for found in _NAMED_FOLDER.finditer(english):
        name = next(part for part in found.groups() if part is not None).strip("/")
        if inside.holds(name) or (name not in _NOT_FOLDERS and name.islower()):
            return name
    words = re.findall(r"[\w-]+", english)
    return next((word for word in words if inside.holds(word)), None)


def _entry_file(english: str, folder: str | None, inside: _Root) -> str:
    entry = _ENTRY_FILES[_asked_kind(english)]
    return inside.path(f"{folder}/{entry}") if folder else entry


def _asked_kind(english: str) -> str:
    for kind, words in _KIND_WORDS:
        if re.search(rf"\b({words})\b", english, re.I):
            return kind
    return "python"


def _phrases(english: str, folder: str | None) -> tuple[str, ...]:
    """Every run of up to eight words, never across a path or a quotation mark."""
    without_paths = _NAMED_FILE.sub("|", english)
    if folder is not None:
        before, after = r"(\b(in|into|inside|under)\s+)?(the\s+)?", r"/?(\s+(folder|directory))?"
        place = rf"{before}\b{re.escape(folder)}\b{after}"
        without_paths = re.sub(place, "|", without_paths)
    found: dict[str, None] = {}
    for part in re.split(r"\||;|[\"“”「」]|(?<!\w)'|'(?!\w)", without_paths):
        words = part.split()[:_MOST_WORDS]
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + _LONGEST_PHRASE) + 1):
                run = " ".join(words[start:end])
                found.update(dict.fromkeys((run, run.rstrip(".,:"), run.strip(".,:!?()"))))
    said = (phrase for phrase in found if phrase.isprintable())
    return tuple(phrase for phrase in said if any(char.isalnum() for char in phrase))
