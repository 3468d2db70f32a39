from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evercontext.retrieval.postings import Column, Postings

Documents = st.lists(
    st.dictionaries(st.integers(0, 8), st.integers(1, 5), max_size=6), min_size=1, max_size=12
)


def _flat(documents: list[dict[int, int]], first: int = 0) -> Postings:
    rows = [(t, d, n) for d, terms in enumerate(documents, first) for t, n in terms.items()]
    terms = np.array([r[0] for r in rows], np.int32)
    return Postings.build(
        terms,
        np.array([r[1] for r in rows], np.int32),
        np.array([r[2] for r in rows], np.float32),
        9,
    )


@given(Documents, Documents)
def test_documents_added_later_are_found_like_those_built_at_once(
    before: list[dict[int, int]], after: list[dict[int, int]]
) -> None:
    grown = _flat(before)
    for i, terms in enumerate(after, len(before)):
        grown.add(i, terms, terms.values())
    at_once = _flat(before + after)
    for term in range(9):
        documents, counts = grown.of(term)
        wanted_documents, wanted_counts = at_once.of(term)
        assert documents.tolist() == wanted_documents.tolist()
        assert counts.tolist() == wanted_counts.tolist()


def test_an_unknown_term_has_no_documents() -> None:
    documents, counts = Postings().of(7)
    assert len(documents) == len(counts) == 0


def test_a_column_keeps_its_rows_while_it_grows() -> None:
    column = Column(np.int32, 2)
    for i in range(200):
        column.extend(np.array([[i, -i]], np.int32))
    assert len(column) == 200
    assert column.values[150].tolist() == [150, -150]
