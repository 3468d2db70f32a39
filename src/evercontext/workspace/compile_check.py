"""Compile every Python file of the folders given, in memory: ``python compile_check.py .``

Run as a program by the project's own Python, where it has no linter. Standard library only, any
Python from 3.7 on; it writes nothing, and reads plain files only.
"""

from __future__ import annotations

import os
import stat
import sys
import traceback
import warnings
from collections.abc import Iterator

SKIPPED = {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox"}
MOST_BYTES = 1 << 24


def main(places: list[str]) -> int:
    """Return 1 if a file is not Python, after saying why."""
    warnings.simplefilter("ignore")
    return int(any([_is_wrong(path) for place in places for path in _files(place)]))  # noqa: C419


def _files(place: str) -> Iterator[str]:
    if not os.path.isdir(place):  # noqa: PTH112
        yield place
        return
    for folder, directories, names in os.walk(place):
        directories[:] = sorted(set(directories) - SKIPPED)
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))  # noqa: PTH118


def _is_wrong(path: str) -> bool:
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:  # noqa: PTH123
                compile(file.read(MOST_BYTES), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError, OSError) as error:
        sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["."]))
