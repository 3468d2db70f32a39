"""Analyse texts in a process of its own, so that a parser that crashes ends nothing else.

Run as ``python -m evercontext.index.worker_process VECTORS SECONDS``. Each text comes on the
standard input as two sizes, the language and the text; each answer goes out as its size and a
packed analysis, in the same order. A text that needs more than SECONDS of processor time ends the
process.
"""

from __future__ import annotations

import gc
import resource
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

WORD = 4
"""Bytes of a size."""
_MOST_BYTES = 1024**3
"""Memory of its own; the analysis of an ordinary file takes a tenth."""


def number(value: int) -> bytes:
    """Return a size as bytes."""
    return value.to_bytes(WORD, "little")


def framed(language: str, text: str) -> bytes:
    """Return a text as this process reads it."""
    name, data = language.encode(), text.encode("utf-8", "surrogatepass")
    return number(len(name)) + number(len(data)) + name + data


def serve(source: BinaryIO, target: BinaryIO, vectors_name: str, seconds: float) -> int:
    """Answer until the input ends; 1 if this installation has other vectors."""
    from evercontext.index.analyse_text import analyse
    from evercontext.index.analysis import pack
    from evercontext.retrieval.static_vectors import load_static_vectors

    vectors = load_static_vectors() if vectors_name else None
    if (vectors.name if vectors else "") != vectors_name:
        return 1
    gc.disable()
    while head := source.read(2 * WORD):
        sizes = int.from_bytes(head[:WORD], "little"), int.from_bytes(head[WORD:], "little")
        language = source.read(sizes[0]).decode()
        text = source.read(sizes[1]).decode("utf-8", "surrogatepass")
        # Nobody handles this signal: it ends the process even inside a parser that never returns.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        packed = pack(analyse(text, language, vectors))
        signal.setitimer(signal.ITIMER_PROF, 0)
        target.write(number(len(packed)) + packed)
        target.flush()
    return 0


def main() -> int:
    """Serve the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    return serve(sys.stdin.buffer, sys.stdout.buffer, sys.argv[1], float(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
