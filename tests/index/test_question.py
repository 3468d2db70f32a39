from __future__ import annotations

import pytest

from evercontext.index.question import understand


@pytest.mark.parametrize(
    "text",
    [
        "where is parse_config",
        "関数parse_configはどこ",
        "parse_configの定義",
        "`parse_config` を呼ぶ所",
    ],
)
def test_a_name_is_known_in_the_words_around_it(text: str) -> None:
    question = understand(text)
    assert question.names == ("parse_config",)
    assert question.symbol is None


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        ("parse_config", "parse_config"),
        ("Router::match", "match"),
        ("HTTPClient", "HTTPClient"),
        ("HTTPClientの使い方", None),
        ("parse the config", None),
    ],
)
def test_one_name_alone_is_a_symbol(text: str, symbol: str | None) -> None:
    assert understand(text).symbol == symbol


@pytest.mark.parametrize("text", ["tests of the cart", "カートのtestはどこ", "カートのテスト"])
def test_whoever_asks_for_tests_gets_tests(text: str) -> None:
    assert understand(text).asks_tests


@pytest.mark.parametrize("text", ["Aa" + "A" * 60 + "_", "a" + "A" * 60 + "_", "a_" * 900 + "é"])
def test_no_question_takes_for_ever(text: str) -> None:
    """X8: forty letters in a search froze every client."""
    assert text.startswith(understand(text).text)


@pytest.mark.parametrize("letters", ["a", "A", "a.", "/a", "a_", "é", "-", ".", "\\", "あ", "a::"])
def test_no_long_text_takes_the_square_of_its_length(letters: str) -> None:
    """25.1: 40,000 letters took 28 seconds; so many would take an hour."""
    text = letters * (400_000 // len(letters)) + "!"
    assert text.startswith(understand(text).text)


def test_the_first_line_says_what_is_meant() -> None:
    """25.1: a word far down switches nothing off, and adds no word to what is meant."""
    question = understand("Cart loses items\n\nThe mock in tests/helpers.py:12 calls add_item()\n")
    assert question.text == "Cart loses items"
    assert question.words == ("cart", "loses", "items")
    assert not question.asks_tests
    assert question.details.paths == {"tests/helpers.py": (12,)}
    assert "add_item" in question.details.names
