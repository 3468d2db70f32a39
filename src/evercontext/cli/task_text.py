"""The text of a task: from the command line, from stdin, or from both together."""

from __future__ import annotations

import os
import select
import stat
import sys
import unicodedata

from evercontext.errors import UsageError

LONGEST_TASK = 1_048_576
_PATIENCE = 1.0
"""Seconds to wait for a pipe that may never carry anything, when the task is known already."""


def whole_task(task: str | None) -> str:
    """The task of the command line, of stdin, or of both together."""
    piped = _read_stdin(wait=task is None)
    text = (task or "").strip()
    if piped.strip():
        text = f"{text}\n\n<stdin>\n{piped.rstrip()}\n</stdin>" if text else piped.strip()
    if not text:
        raise UsageError("the task is empty", fix='Say what to do: --task "..."')
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError("the task is not valid UTF-8", fix="Use a UTF-8 terminal or file")
    return unicodedata.normalize("NFC", text)


def _read_stdin(*, wait: bool) -> str:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty() or not _carries(wait):
        return ""
    content = sys.stdin.buffer.read(LONGEST_TASK + 1)
    if len(content) > LONGEST_TASK:
        raise UsageError("stdin holds more than 1 MiB", fix="Put it into a file of the project")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("stdin is not valid UTF-8", fix="Convert it with iconv") from None


def _carries(wait: bool) -> bool:
    """True if stdin is a file or a pipe with something in it; an idle pipe must not hang us."""
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISREG(kind):
        return True
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return False
    ready, _, _ = select.select([sys.stdin], [], [], None if wait else _PATIENCE)
    return bool(ready)
