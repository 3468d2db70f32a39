"""The spare table: what is used where our own file is missing."""

from __future__ import annotations

import numpy as np
import pytest

from evercontext.retrieval.word_table import StaticVectors, load_wordllama, normalise


@pytest.fixture(scope="module")
def spare() -> StaticVectors:
    found = load_wordllama()
    if found is None:
        pytest.skip("wordllama is not installed")
    return found


def test_it_finds_the_nearest_of_two(spare: StaticVectors) -> None:
    texts = spare.encode(["send an email to a friend", "compile the kernel from source"])
    asked = spare.encode_questions(["write a letter to somebody"])[0]
    assert texts[0] @ asked > texts[1] @ asked
    assert not spare.bilingual


def test_rows_keep_their_place_while_the_table_grows(spare: StaticVectors) -> None:
    first = spare.rows(["alpha", "beta"])
    kept = spare.matrix()[first].copy()
    spare.rows([f"word{i}x" for i in range(3000)])
    np.testing.assert_array_equal(spare.rows(["alpha", "beta"]), first)
    np.testing.assert_array_equal(spare.matrix()[first], kept)


def test_length_is_one_or_nothing() -> None:
    rows = normalise(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
