"""Cut text as BERT's uncased models expect it: lower case, no accents, pieces of words."""

from __future__ import annotations

import gzip
import re
import unicodedata
from functools import lru_cache
from importlib.resources import files

_LONGEST_WORD = 100
_CLASS, _SEPARATOR, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_ALONE = re.compile(
    # ASCII signs, and the blocks whose every character is a word of its own.
    r"[!-/:-@\[-`{-~\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]"
)


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, int]:
    """Return the number of each piece."""
    packed = files("evercontext.models.embedders") / "data" / "bert-uncased-vocabulary.txt.gz"
    words = gzip.decompress(packed.read_bytes()).decode().split("\n")
    return {word: i for i, word in enumerate(words) if word}


def cut(text: str, most: int) -> list[int]:
    """Return the pieces of a text, at most so many, between the two marks."""
    known = vocabulary()
    ids = [known[_CLASS]]
    for word in _words(text):
        ids += _pieces(word)
        if len(ids) >= most:
            break
    return [*ids[: most - 1], known[_SEPARATOR]]


def _words(text: str) -> list[str]:
    spaced = _ALONE.sub(lambda match: f" {match[0]} ", _clean(text))
    plain = unicodedata.normalize("NFD", spaced.lower())
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
    signs = {c for c in plain if not c.isascii() and unicodedata.category(c)[0] == "P"}
    for sign in signs:
        plain = plain.replace(sign, f" {sign} ")
    return plain.split()


def _clean(text: str) -> str:
    """Drop control characters; every kind of space becomes a plain one."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or _is_shown(c))


def _is_shown(character: str) -> bool:
    return character != "\ufffd" and unicodedata.category(character)[0] != "C"


@lru_cache(maxsize=100_000)
def _pieces(word: str) -> tuple[int, ...]:
    known = vocabulary()
    if len(word) > _LONGEST_WORD:
        return (known[_UNKNOWN],)
    ids: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = known.get(("##" if start else "") + word[start:end])
            if piece is not None:
                ids.append(piece)
                start = end
                break
        else:
            return (known[_UNKNOWN],)
    return tuple(ids)
