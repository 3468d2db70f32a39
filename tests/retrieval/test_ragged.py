from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evercontext.retrieval.ragged import Ragged, spread

Rows = st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=20)


@given(Rows, Rows, st.data())
def test_rows_come_back_as_they_went_in(
    first: list[list[int]], second: list[list[int]], data: st.DataObject
) -> None:
    ragged = Ragged(np.int32)
    for rows in (first, second):
        flat = [value for row in rows for value in row]
        ragged.extend(np.array([len(row) for row in rows]), np.array(flat, np.int32))
    both = first + second
    assert len(ragged) == len(both)
    wanted = data.draw(st.lists(st.integers(0, len(both) - 1)))
    values, sizes = ragged.take(np.array(wanted, np.int64))
    assert values.tolist() == [value for i in wanted for value in both[i]]
    assert sizes.tolist() == [len(both[i]) for i in wanted]


def test_slices_are_spread_in_order() -> None:
    assert spread(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert spread(np.zeros(0, int), np.zeros(0, int)).tolist() == []
