from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from evercontext.retrieval.blas import ONE_THREAD

# In a process of its own: the number of threads is one per process, whoever set it.
_COUNT = """
import json, sys
import numpy as np
from evercontext.retrieval.blas import limit_blas_threads
limit_blas_threads()
asked = "threadpoolctl" in sys.modules
from threadpoolctl import threadpool_info
product = np.ones((400, 400), np.float32) @ np.ones((400, 400), np.float32)
threads = [pool["num_threads"] for pool in threadpool_info()]
print(json.dumps([asked, threads, bool((product == 400).all())]))
"""


@pytest.mark.parametrize("environment", [{}, ONE_THREAD, {"OPENBLAS_NUM_THREADS": "2"}])
def test_every_pool_of_the_process_has_one_thread(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _COUNT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    asked, threads, right = json.loads(ended.stdout)
    assert asked == (environment != ONE_THREAD)
    assert set(threads) <= {1}
    assert right
