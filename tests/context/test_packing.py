from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.context.context_request import ContextOverflowError
from evercontext.context.packing import Selection, candidates, pack

WHOLE = st.builds(Selection, st.booleans(), st.integers(0, 20), st.integers(0, 50))


def cost(weights: tuple[int, int, int, int]) -> object:
    base, summary, memory, message = weights
    return lambda s: base + summary * s.summary + memory * s.memories + message * s.messages


@pytest.mark.contract("R15", "R16", "R17", "R18", "R19")
def test_what_is_cut_in_order() -> None:
    order = [(s.summary, s.memories, s.messages) for s in candidates(Selection(True, 3, 4))]
    assert order == [
        (True, 3, 4),
        (False, 3, 4),
        (False, 2, 4),
        (False, 1, 4),
        (False, 1, 3),
        (False, 1, 2),
        (False, 0, 2),
        (False, 0, 1),
        (False, 0, 0),
    ]


@pytest.mark.contract("R3", "R8")
@given(
    WHOLE,
    st.tuples(*[st.integers(0, 500)] * 4),
    st.integers(0, 20_000),
)
def test_a_packed_context_fits_and_nothing_more_would_have(
    whole: Selection, weights: tuple[int, int, int, int], limit: int
) -> None:
    price = cost(weights)
    try:
        chosen = pack(whole, price, limit)  # type: ignore[arg-type]
    except ContextOverflowError:
        assert weights[0] > limit
        return
    tried = list(candidates(whole))
    assert price(chosen) <= limit  # type: ignore[operator]
    assert all(price(earlier) > limit for earlier in tried[: tried.index(chosen)])  # type: ignore[operator]


@given(WHOLE)
def test_each_candidate_has_one_thing_less(whole: Selection) -> None:
    sizes = [s.summary + s.memories + s.messages for s in candidates(whole)]
    assert sizes == list(range(sizes[0], -1, -1))


@pytest.mark.contract("R10")
def test_the_page_about_contexts_tells_this_very_order() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/context.md").read_text("utf-8")
    section = page.partition("## What is left out")[2].partition("##")[0].lower()
    steps = list(itertools.pairwise(candidates(Selection(True, 3, 4))))
    words = {"summary": "the summary", "memories": "memories from", "messages": "conversation from"}
    told: list[str] = []
    for before, after in steps:
        [layer] = [name for name in words if getattr(before, name) != getattr(after, name)]
        if layer not in told:
            told.append(layer)
    places = [section.find(words[layer]) for layer in told]
    assert places == sorted(places)
    assert -1 not in places
    assert "token" in page.lower()
