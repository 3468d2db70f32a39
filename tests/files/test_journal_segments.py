from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evercontext.errors import DiskFull, IoFailed
from evercontext.files.journal_segments import LIVE, Segment, claim, encode, scan
from evercontext.files.system_calls import SYSTEM, Kernel


def records(path: Path) -> list[str]:
    return [record["n"] for record, _ in scan(path)]


def test_a_torn_end_is_ignored(tmp_path: Path) -> None:
    whole = encode({"n": "1"}) + encode({"n": "2", "blob": "x", "size": 5}, b"he\nlo")
    torn = encode({"n": "3", "blob": "y", "size": 5}, b"world")
    for cut in range(len(torn)):
        (tmp_path / "s").write_bytes(whole + torn[:cut])
        assert records(tmp_path / "s") == ["1", "2"]
    (tmp_path / "s").write_bytes(whole + torn)
    assert records(tmp_path / "s") == ["1", "2", "3"]
    (tmp_path / "s").write_bytes(whole.replace(b'"1"', b'"9"'))
    assert records(tmp_path / "s") == []


def test_contents_are_found_again(tmp_path: Path) -> None:
    segment = Segment(tmp_path, SYSTEM)
    segment.sync(segment.append(encode({"n": "1", "blob": "x", "size": 3}, b"\n\0\xff")))
    segment.append(encode({"n": "2"}))
    found = list(scan(segment.path))
    place = found[0][1]
    assert place
    assert place.load() == b"\n\0\xff"
    segment.close()
    assert [p.suffix for p in tmp_path.iterdir()] == [".done"]


def test_many_threads_share_flushes(tmp_path: Path) -> None:
    class Counting(Kernel):
        flushes = 0

        def fdatasync(self, fd: int) -> None:
            Counting.flushes += 1
            super().fdatasync(fd)

    segment = Segment(tmp_path, Counting())

    def one(n: int) -> None:
        segment.sync(segment.append(encode({"n": str(n)})))

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(one, range(400)))
    assert sorted(records(segment.path), key=int) == [str(n) for n in range(400)]
    assert Counting.flushes < 400
    segment.close()


def test_a_failed_flush_is_never_trusted_again(tmp_path: Path) -> None:
    class Once(Kernel):
        failed = False

        def fdatasync(self, fd: int) -> None:
            if not self.failed:
                self.failed = True
                raise OSError(errno.EIO, "io")

    segment = Segment(tmp_path, Once())
    end = segment.append(encode({"n": "1"}))
    with pytest.raises(IoFailed):
        segment.sync(end)
    with pytest.raises(IoFailed):
        segment.sync(end)
    with pytest.raises(IoFailed):
        segment.append(b"x")
    segment.close()
    assert segment.path.exists()


def test_a_short_write_is_taken_back(tmp_path: Path) -> None:
    class Full(Kernel):
        room = 40

        def write(self, fd: int, data: bytes | memoryview) -> int:
            if not self.room:
                raise OSError(errno.ENOSPC, "full")
            taken = min(self.room, len(data))
            self.room -= taken
            return os.write(fd, data[:taken])

    kernel = Full()
    segment = Segment(tmp_path, kernel)
    segment.append(encode({"n": "1"}))
    with pytest.raises(DiskFull):
        segment.append(encode({"n": "2", "long": "x" * 100}))
    kernel.room = 1000
    segment.append(encode({"n": "3"}))
    assert records(segment.path) == ["1", "3"]
    segment.close()


def test_only_an_abandoned_segment_can_be_claimed(tmp_path: Path) -> None:
    segment = Segment(tmp_path, SYSTEM)
    assert segment.path.suffix == LIVE
    assert claim(segment.path) is None
    segment.close(clean=False)
    fd = claim(segment.path)
    assert fd is not None
    assert claim(segment.path) is None
    os.close(fd)
    assert claim(tmp_path / "none.seg") is None


def test_a_segment_removed_before_it_is_on_disk_is_not_acknowledged(tmp_path: Path) -> None:
    """X13: the flush succeeds, in a file that nobody can open again."""
    segment = Segment(tmp_path, SYSTEM)
    end = segment.append(encode({"n": "1"}))
    segment.path.unlink()
    with pytest.raises(IoFailed, match="removed"):
        segment.sync(end)
    assert segment.broken
    segment.close()
    assert list(tmp_path.iterdir()) == []
