"""Programs of the system that some tests need, wherever they lie."""

from __future__ import annotations

import os
import shutil

import pytest

_ROOTS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where root's programs lie; `su` and many containers leave them out of PATH."""


def wide_path() -> str:
    """The search path with the folders of root's programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_ROOTS])


def program(name: str) -> str:
    """Return where a program lies; skip the test where it is not installed."""
    path = shutil.which(name, path=wide_path())
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path
