from __future__ import annotations

import numpy as np
import pytest

from evercontext.index import source_terms
from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import pack
from evercontext.index.source_terms import Lexicon, Renumbering, ScannedWords, scan
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import term_key
from evercontext.retrieval.terms import terms_of
from tests.index.world import SHOP


def scanned(*words: str) -> ScannedWords:
    """Return words as they are found in a text."""
    return scan("\n".join(("", *words, "")).encode(), np.array([0]))


@pytest.mark.parametrize("run", ["parseHTTPHeaders", "x", "snake_case_name", "認証する", "v2"])
def test_a_run_has_the_terms_that_a_question_would_have(run: str) -> None:
    known = Lexicon()
    terms, sizes = known.terms(known.runs(scanned(run)))
    assert known.term_keys(terms).tolist() == [term_key(term) for term in terms_of(run)]
    assert sizes.tolist() == [len(terms_of(run))]


@pytest.mark.contract("E46")
def test_what_was_met_before_leaves_no_trace_in_an_analysis() -> None:
    vectors = load_static_vectors()
    texts = [text for path, text in SHOP.items() if path.endswith(".py")]
    source_terms.shared_lexicon.cache_clear()
    forwards = [pack(analyse(text, "python", vectors)) for text in texts]
    source_terms.shared_lexicon.cache_clear()
    backwards = [pack(analyse(text, "python", vectors)) for text in reversed(texts)]
    assert forwards == backwards[::-1]


def test_a_lexicon_that_forgot_numbers_anew() -> None:
    known = Lexicon()
    first = known.runs(scanned("alpha", "beta", "alpha"))
    assert first.tolist() == [0, 1, 0]
    known._forget()
    assert known.runs(scanned("beta")).tolist() == [0]


def test_values_are_told_apart_call_after_call() -> None:
    places = Renumbering()
    for values in ([5, 3, 5, 9], [], [4_000, 3], [5]):
        given = np.array(values, np.int64)
        found, place = places.of(given)
        assert found.tolist() == sorted(set(values))
        assert found[place].tolist() == values
