from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import FIELDS, pack, unpack
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import term_key
from evercontext.retrieval.terms import count_terms, fold, identifier_term
from tests.index.world import SHOP


def _row(text: str, row: int) -> dict[int, int]:
    found = analyse(text, "python")
    part = found.counts.row(row)
    ids, times = found.counts.positions[part].tolist(), found.counts.counts[part].tolist()
    return {int(found.terms[i]): n for i, n in zip(ids, times, strict=True)}


def _keys(counts: dict[str, int]) -> dict[int, int]:
    return {term_key(term): n for term, n in counts.items()}


def test_each_chunk_counts_its_own_terms() -> None:
    text = SHOP["shop/payment.py"]
    found = analyse(text, "python")
    lines = text.split("\n")
    for i, span in enumerate(found.spans):
        part = "\n".join(lines[span.start - 1 : span.end])
        assert _row(text, i) == _keys(count_terms(fold(part)))


def test_fields_hold_the_names_and_the_header() -> None:
    text = SHOP["shop/payment.py"]
    chunks = len(analyse(text, "python").spans)
    fields = {name: _row(text, chunks + i) for i, name in enumerate(FIELDS)}
    assert term_key(identifier_term("PaymentGateway")) in fields["types"]
    assert {term_key("charg"), term_key("refund")} <= set(fields["functions"])
    assert term_key("card") in fields["header"]


@settings(max_examples=50)
@given(st.text(max_size=300))
@example(":$0")
def test_what_was_packed_comes_back(text: str) -> None:
    found = analyse(text, "python")
    again = unpack(pack(found))
    assert pack(again) == pack(found)
    assert again.terms.tolist() == found.terms.tolist()
    assert again.spans == found.spans


def test_vectors_are_one_per_chunk_and_one_for_the_names() -> None:
    vectors = load_static_vectors()
    assert vectors is not None
    found = analyse(SHOP["shop/cart.py"], "python", vectors)
    assert found.vectors is not None
    assert found.vectors.shape == (len(found.spans) + 1, vectors.dimensions)
    again = unpack(pack(found))
    assert again.vectors is not None
    assert np.array_equal(again.vectors, found.vectors)


@pytest.mark.contract("E39")
def test_an_analysis_depends_on_the_content_alone() -> None:
    text = SHOP["shop/cart.py"]
    assert pack(analyse(text, "python")) == pack(analyse(text, "python"))
