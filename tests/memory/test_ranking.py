from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evercontext.memory.corpus import MemoryCorpus
from evercontext.memory.encoding import encode_terms
from evercontext.memory.ranking import MemoryQuestion, rank, word_scores
from evercontext.retrieval.term_keys import short_term_key


def row(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "change": number,
        "session_id": "s",
        "speaker": None,
        "memory_type": "longterm",
        "created_at": "2026-05-20T12:00:00+00:00",
        "expires_at": None,
        "state": "active",
        "importance": 0.5,
        "encoder": None,
        "terms": encode_terms(text),
        "vector": None,
        **more,
    }


TEXTS = ["good morning", "which heron", "the grey one", "heron and heron", "lunch now"]


def corpus(*groups: list[int]) -> MemoryCorpus:
    made = MemoryCorpus(0)
    for group in groups:
        made.take([row(i + 1, TEXTS[i]) for i in group])
    return made


def test_adding_one_by_one_equals_building_at_once() -> None:
    whole = corpus([0, 1, 2, 3, 4])
    grown = corpus([0], [1], [2, 3], [4])
    terms = {short_term_key("heron"): 1.0, short_term_key("lunch"): 1.0}
    for one, other in ((whole, grown), (grown, whole)):
        a, b = word_scores(one, terms), word_scores(other, terms)
        np.testing.assert_allclose(a.own, b.own, rtol=1e-6)
        np.testing.assert_allclose(a.context, b.context, rtol=1e-6)
        np.testing.assert_allclose(a.session, b.session, rtol=1e-6)
    assert whole.previous.values.tolist() == grown.previous.values.tolist() == [-1, 0, 1, 2, 3]
    assert whole.following.values.tolist() == grown.following.values.tolist() == [1, 2, 3, 4, -1]


def test_the_memory_after_a_match_has_its_context() -> None:
    words = word_scores(corpus([0, 1, 2, 3, 4]), {short_term_key("heron"): 1.0})
    assert words.own[2] == 0
    assert words.context[2] > 0
    assert words.own[3] > words.own[1] > 0
    assert words.context[0] == 0


def test_what_is_not_usable_is_not_ranked() -> None:
    made = corpus([0, 1, 2, 3, 4])
    usable = np.array([True, False, True, False, True])
    ranked = rank(made, MemoryQuestion({short_term_key("heron"): 1.0}, None), usable, 10)
    assert sorted(ranked.numbers.tolist()) == [1, 3, 5]


def test_a_changed_row_leaves_and_comes_back() -> None:
    made = corpus([0, 1])
    made.take([row(2, "", state="forgotten", terms=None, change=9)])
    assert (made.alive.values.tolist(), made.version) == ([True, False], 9)
    made.take([row(2, "", state="active", terms=None, change=10)])
    assert made.alive.values.tolist() == [True, True]


@pytest.mark.usefixtures("tokyo")
def test_a_month_is_one_of_this_machine() -> None:
    moments = ("2023-04-30T16:00:00.000+00:00", "2023-05-31T16:00:00.000+00:00")
    made = MemoryCorpus(0)
    made.take([row(n, "heron", created_at=moment) for n, moment in enumerate(moments, start=1)])
    assert made.months.values.tolist() == [5, 6]
