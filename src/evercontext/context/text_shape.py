"""Count the kinds of characters in a text, for the token estimate.

Tokenizers differ in what they merge: spaces, digits, capitals, signs, kanji. What each measure
costs in tokens is learnt; here it is only counted, by operations on bytes, because every text of
every request passes through.
"""

from __future__ import annotations

import string

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Left out of a shape, so that a character of UTF-8 is one byte there, whatever it was."""


def _kinds() -> bytes:
    """Each first byte of a character becomes the letter of its kind; ``.`` is any other sign."""
    kind = bytearray(b"." * 256)
    groups = {
        b"a": string.ascii_lowercase.encode(),
        b"A": string.ascii_uppercase.encode(),
        b"0": string.digits.encode(),
        b"_": b"_",
        b" ": b" \r\v\f",
        b"\t": b"\t",
        b"\n": b"\n",
        b"L": bytes(range(0xC0, 0xCB)),
        b"F": bytes(range(0xCB, 0x100)),
        b"J": b"\xe3",
        b"K": bytes(range(0xE4, 0xEA)),
        b"W": b"\xef",
    }
    for letter, group in groups.items():
        for byte in group:
            kind[byte] = letter[0]
    return bytes(kind)


def _only(kinds: bytes) -> bytes:
    return bytes(ord("x") if byte in kinds else ord(" ") for byte in range(256))


_KINDS = _kinds()
_VIEWS = {
    "letters": _only(b"aA"),
    "capitals": _only(b"A"),
    "digits": _only(b"0"),
    "signs": _only(b"._"),
    "gaps": _only(b" \t\n"),
    "kanji": _only(b"K"),
}
MEASURES: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "word": ("letters", (b" x",)),
    "four letters": ("letters", (b"xxxx",)),
    "eight letters": ("letters", (b"xxxxxxxx",)),
    "capital": ("capitals", (b"x",)),
    "two capitals": ("capitals", (b"xx",)),
    "camel": ("shape", (b"aA",)),
    "digit": ("digits", (b"x",)),
    "number": ("digits", (b" x",)),
    "three digits": ("digits", (b"xxx",)),
    "letter by digit": ("shape", (b"a0", b"0a")),
    "sign": ("signs", (b"x",)),
    "signs": ("signs", (b" x",)),
    "two signs": ("signs", (b"xx",)),
    "four signs": ("signs", (b"xxxx",)),
    "underscore": ("shape", (b"_",)),
    "gap": ("gaps", (b" x",)),
    "gap of four": ("gaps", (b"xxxx",)),
    "gap of eight": ("gaps", (b"xxxxxxxx",)),
    "two spaces": ("shape", (b"  ",)),
    "tab": ("shape", (b"\t",)),
    "indent": ("shape", (b"\n ", b"\n\t")),
    "line": ("shape", (b"\n",)),
    "blank line": ("shape", (b"\n\n",)),
    "word after space": ("shape", (b" a", b" A")),
    "sign after space": ("shape", (b" .",)),
    "digit after space": ("shape", (b" 0",)),
    "quote": ("bytes", (b'"',)),
    # Two bytes tell hiragana and ア…タ from the later katakana: near enough, and quick.
    "kana": ("bytes", (b"\xe3\x81", b"\xe3\x82")),
    "late katakana": ("bytes", (b"\xe3\x83",)),
    "mark": ("bytes", (b"\xe3\x80",)),
    "kanji": ("kanji", (b"x",)),
    "kanji word": ("kanji", (b" x",)),
    "wide": ("shape", (b"W",)),
    "accented": ("shape", (b"L",)),
    "foreign": ("shape", (b"F",)),
}
"""Name → where to count, and which patterns: in the bytes, the shape, or one kind of it."""


def measure(text: str) -> list[float]:
    """Return every measure of a text, in the order of ``MEASURES``."""
    raw = text.encode("utf-8", "replace")
    # A run is counted where it begins: before the first character there is one of no kind.
    shape = b"\0" + raw.translate(_KINDS, _CONTINUATION)
    views = {name: shape.translate(view) for name, view in _VIEWS.items()}
    views["bytes"], views["shape"] = raw, shape
    return [float(sum(map(views[view].count, patterns))) for view, patterns in MEASURES.values()]
