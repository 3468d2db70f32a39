"""Read a small task: the file it asks for, and the texts that may be written into it.

A 135M model invents paths and forgets words. So the path comes from the task, and the grammar lets
the model quote only what the task contains.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evercontext.domain.japanese import is_japanese
from evercontext.models.embedded.file_forms import FileForm, entry_file, form_of

_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w.-]*\w\.[a-z][a-z0-9]{0,4}(?![\w/])", re.I | re.A)
_FOLDER = re.compile(
    r"\b(?:in|into|inside|under)\s+(?:the\s+|a\s+|folder\s+)*(?P<english>[a-z_][\w/-]*)/?"
    r"(?:\s+(?:folder|directory)\b)?"
    r"|(?P<before>[a-z_][\w/-]*)/?\s+(?:folder|directory)\b"
    r"|(?P<japanese>[a-z_][\w/-]*)/?\s*(?:フォルダー?|ディレクトリ)?(?:の中)?\s*[にへで]",
    re.A,
)
_NOT_FOLDERS = frozenset({"python", "javascript", "json", "html", "markdown", "english", "order"})
_WRITE = re.compile(
    r"\b(?:create|make|write|add|put|generate|build|implement|define|save|store|update|change|set|"
    r"replace|need|want|print(?:s|ing)?|say(?:s|ing)?|program|script|hello world)\b"
    r"|作|書|追加|表示|出力|保存|生成|実装|設定|記載|記述|変更|にする",
    re.I,
)
_QUESTION = re.compile(
    r"\b(?:what|why|how|which|who|where|does|is|explain|describe|summari[sz]e|read|show|list|tell)\b"
    r"|[?？]|何|なぜ|説明|教え|要約",
    re.I,
)
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』')
_LATIN = re.compile(r"[!-~]+(?: [!-~]+)*")
_LONGEST_PHRASE = 8
_MOST_WORDS = 48


@dataclass(frozen=True, slots=True)
class FileTask:
    """One small file to write."""

    text: str
    path: str
    form: FileForm | None
    """How such a file is written; ``None`` if the model cannot write this kind."""
    phrases: tuple[str, ...]
    """Texts of the task that the file may quote, without paths."""
    other_files: tuple[str, ...]
    """Further files that the task names; only one is written."""
    wants_file: bool
    """False for questions and small talk."""
    japanese: bool

    @property
    def words(self) -> tuple[str, ...]:
        """Return the single words among the phrases."""
        return tuple(phrase for phrase in self.phrases if " " not in phrase)


def read_task(text: str, tree: Iterable[str] = (), root_name: str = "") -> FileTask:
    """Return what ``text`` asks for, in a project that holds the files of ``tree``."""
    text = " ".join(unicodedata.normalize("NFC", text).split())
    files, japanese = tuple(tree), is_japanese(text)
    named = [_inside(match.group(), files, root_name) for match in _FILE.finditer(text)]
    folder = None if named else _FOLDER.search(_QUOTED.sub(" ", text))
    folder_name = _folder_name(folder)
    entry = f"{folder_name}/{entry_file(text)}" if folder_name else entry_file(text)
    paths = list(dict.fromkeys(named)) or [_inside(entry, files, root_name)]
    remaining = _FILE.sub("|", text)
    if folder and folder_name:
        remaining = remaining.replace(folder.group(), "|", 1)
    return FileTask(
        text=text,
        path=paths[0],
        form=form_of(paths[0], remaining),
        phrases=tuple(dict.fromkeys(_phrases(remaining, japanese))),
        other_files=tuple(paths[1:]),
        wants_file=bool(_WRITE.search(text) or (named and not _QUESTION.search(text))),
        japanese=japanese,
    )


def _inside(path: str, files: tuple[str, ...], root_name: str) -> str:
    """Return a path below the root; the root's own name in front of it means the root (E34)."""
    path = path.rstrip(".")
    while path.startswith("./"):
        path = path[2:]
    own = f"{root_name}/"
    is_root = root_name and path.startswith(own) and not any(f.startswith(own) for f in files)
    return path.removeprefix(own) if is_root else path


def _folder_name(match: re.Match[str] | None) -> str | None:
    name = "".join(match.groups("")).strip("/") if match else ""
    return name if name and name not in _NOT_FOLDERS else None


def _phrases(text: str, japanese: bool) -> Iterator[str]:
    quoted = ["".join(match.groups("")) for match in _QUOTED.finditer(text)]
    if quoted:
        yield from quoted
    if japanese:
        yield from (run.strip() for part in text.split("|") for run in _LATIN.findall(part))
        return
    for part in re.split(r"\||;|[\"“”]|(?<!\w)'|'(?!\w)", text):
        yield from _word_runs(part.split()[:_MOST_WORDS])


def _word_runs(words: list[str]) -> Iterator[str]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _LONGEST_PHRASE) + 1):
            run = " ".join(words[start:end])
            if run.isprintable() and any(char.isalnum() for char in run):
                yield from (run, run.rstrip(".,:"), run.strip(".,:!?()"))
