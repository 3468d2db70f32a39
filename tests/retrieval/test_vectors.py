from __future__ import annotations

import numpy as np

from evercontext.retrieval.vectors import BYTE_SCALE, from_bytes, normalise, to_bytes, to_full_bytes

ROWS = np.array([[3.0, 4.0], [0.0, 0.0], [-30.0, 40.0]], np.float32)


def test_length_is_one_or_nothing() -> None:
    unit = [[0.6, 0.8], [0.0, 0.0], [-0.6, 0.8]]
    np.testing.assert_allclose(normalise(ROWS), unit, rtol=1e-6)
    np.testing.assert_allclose(normalise(ROWS[0]), [0.6, 0.8], rtol=1e-6)


def test_bytes_keep_the_direction_of_a_vector() -> None:
    random = np.random.default_rng(1).standard_normal((20, 64), dtype=np.float32)
    for stored in (to_bytes(random), to_full_bytes(random)):
        assert stored.dtype == np.int8
        assert ((from_bytes(stored) * normalise(random)).sum(axis=1) > 0.99).all()
    assert to_bytes(ROWS)[0].tolist() == [round(0.6 * BYTE_SCALE), round(0.8 * BYTE_SCALE)]
    assert to_full_bytes(ROWS).tolist() == [[95, 127], [0, 0], [-95, 127]]
    assert not from_bytes(to_full_bytes(ROWS))[1].any()
