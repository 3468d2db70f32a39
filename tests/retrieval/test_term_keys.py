from __future__ import annotations

import pytest

from evercontext.retrieval.term_keys import short_term_key, term_key, term_keys


def test_keys_are_the_same_in_every_process() -> None:
    """They are stored: another value would make every index and memory of users unreadable."""
    assert term_key("parse") == 0x5A25565468038C17
    assert short_term_key("parse") == 0xD2D58468


@pytest.mark.parametrize("term", ["", "parse", "認証", "\udc80"])
def test_many_keys_are_those_of_each_term(term: str) -> None:
    assert term_keys(["x", term]).tolist() == [term_key("x"), term_key(term)]
    assert term_key(term) != term_key(f"{term}x")
    assert short_term_key(term) != short_term_key(f"{term}x")
