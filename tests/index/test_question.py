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
    assert understand(text).text == text
