from __future__ import annotations

import numpy as np
import pytest

from evercontext.memory.products import SMALL, dot


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000])
@pytest.mark.parametrize("width", [1, 64, 256, SMALL + 1])
def test_blocks_add_up_to_the_whole_product(count: int, width: int) -> None:
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((count, width), dtype=np.float32)
    vector = rng.standard_normal(width, dtype=np.float32)
    assert np.allclose(dot(rows, vector), rows @ vector, atol=1e-2)
