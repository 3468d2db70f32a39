from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.files.local_disk import is_local


def opened(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return is_local(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs here")
def test_memory_is_local_and_the_kernel_is_no_disk() -> None:
    assert opened("/dev/shm")
    assert not opened("/proc")
