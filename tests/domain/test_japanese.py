from __future__ import annotations

import pytest

from evercontext.domain.japanese import has_kana, is_japanese, japanese_characters


@pytest.mark.parametrize(
    ("text", "japanese", "kana"),
    [
        ("plain English", False, False),
        ("naïve café", False, False),
        ("ひらがな", True, True),
        ("read カタカナ too", True, True),
        ("漢字", True, False),
        ("人々", True, False),
        ("ﾊﾝｶｸ", True, False),
        ("한국어", False, False),
    ],
)
def test_japanese_is_known_by_its_characters(text: str, japanese: bool, kana: bool) -> None:
    assert is_japanese(text) is japanese
    assert has_kana(text) is kana


def test_characters_are_returned_in_order() -> None:
    assert japanese_characters("a日b本c語") == ["日", "本", "語"]
