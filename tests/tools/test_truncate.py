from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from evercontext.events.redaction import LONGEST
from evercontext.tools.truncate import bounded, truncate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


def test_the_beginning_and_the_end_are_kept() -> None:
    assert truncate("short", 10) == ("short", False)
    text, cut = truncate("a" * 60 + "b" * 60, 30)
    assert (text[:20], text[-10:], cut) == ("a" * 20, "b" * 10, True)


@given(JSON)
def test_what_is_small_stays_as_it_is(value: object) -> None:
    assert bounded(value) == value


def test_what_is_large_is_cut_in_few_steps() -> None:
    """X8: a call of millions of values was written out whole, on the event loop."""
    for value in (["x"] * 3_000_000, {"edits": [{"old": "a" * 9000}] * 3000}, "あ" * 3_000_000):
        assert len(json.dumps(bounded(value), ensure_ascii=False)) < 2 * LONGEST
