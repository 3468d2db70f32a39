"""Read a skill: a folder with a SKILL.md that says when it helps and how to proceed."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

FILE = "SKILL.md"
LONGEST_FRONT = 8_192
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_024
_NAME = re.compile(r"[\w][\w.-]*")
_KEY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")


@dataclass(frozen=True, slots=True)
class Skill:
    """The description of one skill; ``problem`` says why it cannot be used."""

    name: str
    description: str
    place: str
    origin: str
    """``user``, or ``project`` for one that a repository brought."""
    body: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Every file of the folder and the hash of its content."""
    trusted: bool = False
    problem: str = ""

    @property
    def state(self) -> str:
        """Whether it can be loaded, in a word or two."""
        return self.problem or ("trusted" if self.trusted else "untrusted")

    @property
    def usable(self) -> bool:
        """True if a model may be given it."""
        return self.trusted and not self.problem

    def manifest(self) -> bytes:
        """Return the names and contents of all its files, which trust is given to."""
        return manifest(self.files)


def manifest(files: Mapping[str, str]) -> bytes:
    """The files of a skill as one text that changes when any of them does."""
    return json.dumps(["skill", sorted(files.items())], ensure_ascii=False).encode()


def hashed(content: bytes) -> str:
    """The hash that a manifest holds."""
    return hashlib.sha256(content).hexdigest()


def parse(text: str, folder: str) -> tuple[str, str, str, str]:
    """Return name, description, body and the problem of a SKILL.md."""
    front, body, problem = _split(text)
    facts = _facts(front)
    name = _name(facts.get("name", "")) or _name(folder)
    if not problem and not name:
        problem = "its name is no name"
    described = facts.get("description", "") or _first_words(body)
    return name or "?", _short(described, LONGEST_DESCRIPTION), body.strip(), problem


def _split(text: str) -> tuple[str, str, str]:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith("---\n"):
        return "", text, ""
    end = text.find("\n---", 3, LONGEST_FRONT)
    if end < 0:
        return "", "", "its front matter has no end, or is too long"
    rest = text[end + 4 :]
    return text[4 : end + 1], rest.partition("\n")[2], ""


def _facts(front: str) -> dict[str, str]:
    """Parse the plain keys of front matter: a small part of YAML in which nothing can be hidden."""
    facts: dict[str, str] = {}
    key = ""
    for line in front.split("\n"):
        match = _KEY.fullmatch(line.rstrip())
        if match:
            key = match[1].lower()
            value = (match[2] or "").strip()
            facts.setdefault(key, "" if value in ("|", ">", "|-", ">-") else _unquoted(value))
        elif key and line[:1] in (" ", "\t") and line.strip():
            facts[key] = f"{facts[key]} {line.strip()}".strip()
    return facts


def _unquoted(value: str) -> str:
    quote = value[:1]
    return value[1:-1] if len(value) > 1 and quote in "\"'" and value.endswith(quote) else value


def _name(text: str) -> str:
    name = unicodedata.normalize("NFC", text.strip())
    return name if len(name) <= LONGEST_NAME and _NAME.fullmatch(name) else ""


def _first_words(body: str) -> str:
    lines = (line.strip("# \t") for line in body.split("\n"))
    return next((line for line in lines if line), "")


def _short(text: str, longest: int) -> str:
    plain = "".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFC", text))
    return " ".join(plain.split())[:longest]
