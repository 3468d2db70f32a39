from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.context.text_shape import MEASURES, measure


def measured(text: str) -> dict[str, float]:
    return {name: value for name, value in zip(MEASURES, measure(text), strict=True) if value}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("ab", {"word": 1}),
        (
            "HTTPServer",
            {"word": 1, "four letters": 2, "eight letters": 1, "capital": 5, "two capitals": 2},
        ),
        ("getName", {"word": 1, "four letters": 1, "capital": 1, "camel": 1}),
        ("12 345", {"digit": 5, "number": 2, "three digits": 1, "gap": 1, "digit after space": 1}),
        ("x1", {"word": 1, "digit": 1, "number": 1, "letter by digit": 1}),
        ("----", {"sign": 4, "signs": 1, "two signs": 2, "four signs": 1}),
        (
            "\n    a",
            {
                "word": 1,
                "gap": 1,
                "gap of four": 1,
                "two spaces": 2,
                "indent": 1,
                "line": 1,
                "word after space": 1,
            },
        ),
        ('"', {"sign": 1, "signs": 1, "quote": 1}),
        ("かなアナ漢字。", {"kana": 3, "late katakana": 1, "kanji": 2, "kanji word": 1, "mark": 1}),
        ("漢字と漢字", {"kana": 1, "kanji": 4, "kanji word": 2}),
        ("ＡＢ", {"wide": 2}),
        ("éдあ", {"accented": 1, "foreign": 1, "kana": 1}),
    ],
)
def test_a_text_is_measured(text: str, expected: dict[str, float]) -> None:
    assert measured(text) == expected


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_text_has_a_shape_and_more_text_has_no_smaller_one(one: str, other: str) -> None:
    first, both = measure(one), measure(one + " " + other)
    assert len(first) == len(MEASURES)
    assert all(a <= b for a, b in zip(first, both, strict=True))
