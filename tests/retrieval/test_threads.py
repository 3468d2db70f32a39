from __future__ import annotations

import subprocess
import sys

# In a process of its own: the number of threads is one per process, whoever set it.
_COUNT = """
import numpy as np
from evercontext.retrieval.threads import use_one_thread
done = use_one_thread()
a = np.ones((400, 400), np.float32)
print(done, bool((a @ a == 400).all()))
"""


def test_the_library_that_numpy_brings_is_told() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _COUNT], capture_output=True, text=True, check=True
    )
    told, right = ended.stdout.split()
    assert right == "True"
    assert told == str("openblas" in _libraries())


def _libraries() -> str:
    import numpy as np

    return str(np.__config__.CONFIG["Build Dependencies"]["blas"]["name"])
