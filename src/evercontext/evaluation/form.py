"""The form of a text file: what no judge looks at and every rewrite has to keep."""

from __future__ import annotations

from dataclasses import dataclass

BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Form:
    """Byte order mark, line endings, and whether the last line ends."""

    bom: bool = False
    newline: str = "\n"
    ends: bool = True

    @classmethod
    def of(cls, raw: str) -> Form:
        """The habits of a text; where they are mixed, the commoner one."""
        bare = raw.removeprefix(BOM)
        windows, lines = bare.count("\r\n"), bare.count("\n")
        newline = "\r\n" if windows * 2 > lines else "\r" if "\r" in bare and not lines else "\n"
        return cls(raw.startswith(BOM), newline, not bare or bare.endswith(("\n", "\r")))

    def dress(self, text: str) -> str:
        """Give a plain text this form."""
        text = plain(text)
        if not self.ends:
            text = text.rstrip("\n")
        elif text and not text.endswith("\n"):
            text += "\n"
        text = text if self.newline == "\n" else text.replace("\n", self.newline)
        return BOM + text if self.bom else text


def plain(raw: str) -> str:
    """The text alone: no mark in front, ``\\n`` at the end of lines."""
    return raw.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")
