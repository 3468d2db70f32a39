from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

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


def test_a_removed_file_is_locked_anew_where_others_lock(tmp_path: Path) -> None:
    """X13: two processes that lock two files of one name do not wait for each other."""
    ours = PathLocks(tmp_path / "locks")
    (tmp_path / "locks").unlink()
    theirs = PathLocks(tmp_path / "locks")
    ours.ensure_in_place()
    with ours.hold(["a.txt"]):
        child = os.fork()
        if child == 0:
            with pytest.raises(BlockingIOError):
                fcntl.lockf(theirs._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ours.close()
    theirs.close()
