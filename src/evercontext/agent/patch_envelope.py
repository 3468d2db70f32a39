"""Read the patch envelope that Codex models write (``*** Begin Patch``) as edits of files.

Only what says exactly which lines it means is taken: a hunk without any line of the file is
refused, so that the model is asked again instead of a place being guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_END_OF_FILE = "*** End of File"


class InvalidPatch(ValueError):
    """Why a text is not a patch that can be carried out as it is meant."""


@dataclass(slots=True)
class PatchedFile:
    """What a patch does to one file."""

    action: str
    """``Add``, ``Update`` or ``Delete``."""
    path: str
    lines: list[str] = field(default_factory=list)
    move_to: str | None = None

    @property
    def content(self) -> str:
        """The content of a new file."""
        if any(not line.startswith("+") for line in self.lines):
            raise InvalidPatch(f"{self.path}: every line of a new file begins with +")
        return "".join(f"{line[1:]}\n" for line in self.lines)

    def edits(self) -> list[dict[str, str]]:
        """Return the changes of an existing file, one for each hunk."""
        return [_edit(hunk, self.path) for hunk in self._hunks() if any(hunk)]

    def _hunks(self) -> list[list[str]]:
        hunks: list[list[str]] = [[]]
        for line in self.lines:
            if line.startswith("@@"):
                hunks.append([])
            elif line != _END_OF_FILE:
                hunks[-1].append(line)
        return hunks


def read_patch(text: str) -> list[PatchedFile]:
    """Return the files of the first patch in a text."""
    begin = text.find(_BEGIN)
    end = text.find(_END, begin)
    if begin < 0 or end < 0:
        raise InvalidPatch("a patch begins with *** Begin Patch and ends with *** End Patch")
    files: list[PatchedFile] = []
    for line in text[begin:end].splitlines()[1:]:
        # Before the lines of a file a header may be indented; below them a space is one of theirs.
        inside = bool(files and files[-1].lines)
        if header := _HEADER.fullmatch(line.rstrip() if inside else line.strip()):
            files.append(PatchedFile(header[1], header[2].strip()))
        elif files and (move := _MOVE.fullmatch(line.rstrip())):
            files[-1].move_to = move[1].strip()
        elif files:
            files[-1].lines.append(line)
        elif line.strip():
            raise InvalidPatch("a patch names its first file before anything else")
    if not files:
        raise InvalidPatch("the patch names no file")
    return files


def _edit(hunk: list[str], path: str) -> dict[str, str]:
    if any(line[:1] not in (" ", "+", "-", "") for line in hunk):
        raise InvalidPatch(f"{path}: a line begins with a space, + or -")
    # A blank line of context often lost its space.
    old = [line[1:] for line in hunk if line[:1] != "+"]
    new = [line[1:] for line in hunk if line[:1] != "-"]
    if not any(line.strip() for line in old):
        raise InvalidPatch(f"{path}: a hunk holds no line of the file to put it at")
    if new:
        return {"old": "\n".join(old), "new": "\n".join(new)}
    return {"old": "\n".join(old) + "\n", "new": ""}
