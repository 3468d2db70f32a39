from __future__ import annotations

import math

import numpy as np
import pytest

from evercontext.retrieval.bm25f import (
    Field,
    FieldIndex,
    bm25,
    inverse_document_frequency,
    length_norm,
    saturate,
)

FIELDS = {"name": Field(3.0, 0.3), "text": Field(1.0, 0.75)}
DOCUMENTS = [
    {"name": {"read": 1.0}, "text": {"file": 2.0, "disk": 1.0}},
    {"name": {"send": 1.0}, "text": {"message": 1.0, "file": 1.0}},
    {"name": {}, "text": {"rain": 1.0}},
]


def test_a_rarer_term_is_worth_more_and_no_term_is_worth_nothing() -> None:
    values = [inverse_document_frequency(10, containing) for containing in range(11)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(math.log(22))
    assert values[-1] > 0


def test_the_average_length_changes_no_count() -> None:
    relative = np.array([0.5, 1.0, 2.0], np.float32)
    assert length_norm(relative, 0.75).tolist() == [0.625, 1.0, 1.75]
    assert length_norm(relative, 0.0).tolist() == [1.0, 1.0, 1.0]
    assert length_norm(relative, 1.0).tolist() == relative.tolist()


def test_counts_saturate_below_one() -> None:
    shares = saturate(np.array([0, 2, 1_000_000], np.float32), 2.0)
    assert shares[0] == 0
    assert shares[1] == 0.5
    assert 0.99 < shares[2] < 1
    assert shares.dtype == np.float32


def test_bm25_is_the_textbook_formula() -> None:
    counts, lengths = np.array([1, 3], np.float32), np.array([10, 40], np.float32)
    expected = [c / (c + 1.2 * (0.25 + 0.75 * n / 20)) for c, n in ((1, 10), (3, 40))]
    assert bm25(counts, lengths / np.float32(20), 1.2, 0.75).tolist() == pytest.approx(expected)


def test_fields_count_by_their_weight() -> None:
    index = FieldIndex(DOCUMENTS, FIELDS, 1.2)
    scores = index.scores({"read": 1.0, "file": 1.0})
    assert scores[0] > scores[1] > scores[2] == 0
    assert index.documents("file").tolist() == [0, 1]
    assert index.documents("unknown").tolist() == []
    assert index.frequencies(["file", "rain", "unknown"]) == [2, 1, 0]


def test_scores_are_shares_of_what_is_known_of_the_question() -> None:
    index = FieldIndex(DOCUMENTS, FIELDS, 1.2)
    known = index.scores({"rain": 1.0})
    assert 0 < known[2] < 1
    assert index.scores({"rain": 2.0, "unknown": 5.0}).tolist() == pytest.approx(known.tolist())
    assert not index.scores({"unknown": 1.0}).any()
    assert FieldIndex([], FIELDS, 1.2).scores({"rain": 1.0}).tolist() == []
