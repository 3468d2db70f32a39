"""GCC's OpenMP library, which llama.cpp needs, for systems that have none.

A minimal Linux lacks it, and an ordinary user cannot install it. A package on the Python registry
carries it under a name of its own; ``model pull`` brings that file, and only where it is needed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

from evercontext.errors import LibraryMissing, ModelProblem, ModelUnavailable
from evercontext.models.embedded.registry import Registry
from evercontext.models.embedded.weights import SMOLLM2, Weights, is_pulled, pull

NAME = "libgomp.so.1"

_BY_MACHINE = {
    "x86_64": Weights(
        name=SMOLLM2.name,
        file="libgomp-870cb1d0.so.1.0.0",
        package="pykdtree",
        version="1.4.3",
        member="pykdtree.libs/libgomp-870cb1d0.so.1.0.0",
        size=253_289,
        sha256="4dae993cb6da9101fc2cfef827306dd03b892011d2e2789c8e44828ca9f2583c",
    ),
    "aarch64": Weights(
        name=SMOLLM2.name,
        file="libgomp-947d5fa1.so.1.0.0",
        package="pykdtree",
        version="1.4.3",
        member="pykdtree.libs/libgomp-947d5fa1.so.1.0.0",
        size=343_345,
        sha256="dc3231f8fd4cadc46d8659c3b8dd811ae33174749e86807f16f61ead6ee59bfd",
    ),
}
"""libgomp of GCC 14 (GPL-3.0 with the GCC runtime library exception); the same in the wheels for
every Python, and it needs only glibc 2.17."""


def is_at_hand(home: Path) -> bool:
    """True if llama.cpp will find the library, the system's or the one that was brought."""
    library = _BY_MACHINE.get(platform.machine())
    return not is_lacking() or (library is not None and is_pulled(home, library))


def is_lacking() -> bool:
    """True if this system has no OpenMP library of GCC's and needs one."""
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return True
    return False


async def bring(home: Path, registry: Registry) -> None:
    """Bring the library if the system lacks it; raise what names the package to install."""
    if not is_lacking():
        return
    library = _BY_MACHINE.get(platform.machine())
    if library is None:
        raise LibraryMissing(NAME)
    try:
        await pull(home, registry, library)
    except ModelUnavailable as problem:
        raise LibraryMissing(NAME, why=problem.message) from problem


def preload(folder: Path) -> None:
    """Load the library that was brought, so that llama.cpp takes it for the system's."""
    library = _BY_MACHINE.get(platform.machine())
    if library is None:
        raise LibraryMissing(NAME)
    path = folder / library.file
    try:
        library.verify(path)
    except ModelProblem as problem:
        raise LibraryMissing(NAME, why=f"{library.pull_command} would bring it") from problem
    _load(path.read_bytes(), library.file.encode())


def _load(content: bytes, name: bytes) -> None:
    # The linker goes by the name inside the file, which wheels change; it is put back in a copy
    # in memory. The shorter name leaves the length, and so every offset, as it was.
    renamed = content.replace(name + b"\0", NAME.encode().ljust(len(name) + 1, b"\0"))
    try:
        with os.fdopen(os.memfd_create("libgomp"), "wb", buffering=0) as copy:
            copy.write(renamed)
            ctypes.CDLL(f"/proc/self/fd/{copy.fileno()}")
    except OSError as problem:
        raise LibraryMissing(NAME, why=str(problem)) from problem
