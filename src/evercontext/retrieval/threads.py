"""Keep numpy's matrix library to one thread.

Our products are small. Spread over several threads each takes as long as before, while the others
wait for work by spinning: a thousand of them were measured to cost 2.1 instead of 0.06 CPU seconds.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

_PLACES = ("../numpy.libs", ".dylibs")
_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@lru_cache(maxsize=1)
def use_one_thread() -> bool:
    """Tell the library, where it came with numpy; False if it is another one."""
    home = Path(np.__file__).parent
    for file in (f for place in _PLACES for f in (home / place).glob("*openblas*")):
        with suppress(OSError):
            library = ctypes.CDLL(str(file))
            for name in _NAMES:
                if hasattr(library, name.format("set")):
                    getattr(library, name.format("set"))(1)
                    return bool(getattr(library, name.format("get"))() == 1)
    return False
