"""Keep the byte order mark and line endings of a text file through every rewrite."""

from __future__ import annotations

from dataclasses import dataclass

BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The byte order mark, line ending, and whether the last line ends with one."""

    bom: bool = False
    newline: str = "\n"
    ends: bool = True

    @classmethod
    def of(cls, raw: str) -> TextFormat:
        """Detect the format of a text; where line endings are mixed, the more frequent one."""
        bare = raw.removeprefix(BOM)
        windows, lines = bare.count("\r\n"), bare.count("\n")
        newline = "\r\n" if windows * 2 > lines else "\r" if "\r" in bare and not lines else "\n"
        return cls(raw.startswith(BOM), newline, not bare or bare.endswith(("\n", "\r")))

    def apply(self, text: str) -> str:
        """Return a plain text in this format."""
        text = plain(text)
        if not self.ends:
            text = text.rstrip("\n")
        elif text and not text.endswith("\n"):
            text += "\n"
        text = text if self.newline == "\n" else text.replace("\n", self.newline)
        return BOM + text if self.bom else text


def plain(raw: str) -> str:
    """Return the text without a byte order mark and with ``\\n`` line endings."""
    return raw.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")
