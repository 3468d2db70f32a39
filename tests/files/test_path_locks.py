from __future__ import annotations

import os
import time
from pathlib import Path

from evercontext.files.path_locks import PathLocks


def test_another_process_waits(tmp_path: Path) -> None:
    """The child can only write its line after the lock is released."""
    ours = PathLocks(tmp_path / "locks")
    reader, writer = os.pipe()
    with ours.hold(["a.txt", "b.txt"]):
        child = os.fork()
        if child == 0:
            with PathLocks(tmp_path / "locks").hold(["b.txt"]):
                os.write(writer, b"child")
            os._exit(0)
        time.sleep(0.1)
        os.write(writer, b"parent ")
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"parent child"
    for fd in (reader, writer):
        os.close(fd)
    ours.close()
    ours.close()
