"""Read standard input as a stream that a signal can end."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator

from evercontext.errors import BadRequest

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one message over stdio."""


async def open_stdin() -> asyncio.StreamReader | None:
    """Connect stdin to the loop; ``None`` for a file or ``/dev/null``, which never wait.

    A thread that waits for a line outlives every signal.
    """
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty()):
        return None
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def read_lines() -> AsyncIterator[bytes]:
    """The lines of stdin until it ends."""
    reader = await open_stdin()
    if reader is None:
        for line in sys.stdin.buffer:
            yield line
        return
    try:
        async for line in reader:
            yield line
    except ValueError:
        limit = LONGEST_LINE // (1024 * 1024)
        raise BadRequest(f"a message on stdin is longer than {limit} MiB") from None
