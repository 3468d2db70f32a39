"""Everyday Japanese and Chinese words, read as the English ones that tools use."""

from __future__ import annotations

from importlib import resources

import pytest

from evercontext.catalog.synonyms import english_terms, for_meaning, is_chinese, language_of


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("最新ニュースを探して", {"latest", "new", "search"}),
        ("トヨタの株価はいくら", {"stock", "pric"}),
        ("東京の宿", {"hotel"}),
        ("获取天气预报", {"weather", "forecast"}),
        ("Get the weather", set()),
    ],
)
def test_words_of_daily_life_have_english_ones(text: str, terms: set[str]) -> None:
    assert terms <= english_terms(text).keys()


def test_software_words_are_still_known() -> None:
    assert "encrypt" in english_terms("暗号化する") or "encryption" in english_terms("暗号化する")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Get news", "en"),
        ("Résumé of 3 files", "en"),
        ("天気を調べる", "ja"),
        ("画像検索", "ja"),
        ("获取新闻，提供链接", "zh"),
        ("ＡＰＩ", "en"),
    ],
)
def test_languages_are_told_apart(text: str, language: str) -> None:
    assert language_of(text) == language
    assert is_chinese(text) == (language == "zh")


def test_the_vectors_are_given_what_they_can_read() -> None:
    assert for_meaning("plain text") == "plain text"
    assert for_meaning("bing: 搜索新闻 via API") == "bing search news via API"
    assert for_meaning("天気と株価") == " weather と stock price "
    assert for_meaning("サーバーのメール") == " server の email "


def test_the_list_is_well_formed() -> None:
    text = resources.files("evercontext.catalog").joinpath("synonyms.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    assert all(len(row) == 3 and row[0].isascii() and (row[1] or row[2]) for row in rows)
    for column in (1, 2):
        for row in rows:
            words = row[column].split()
            assert len(words) == len(set(words)), row
