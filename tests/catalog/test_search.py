"""Finding tools by words, by meaning and across languages."""

from __future__ import annotations

import pytest

from evercontext.catalog.card import Card, read_card
from evercontext.catalog.search import Strategy, ToolSearch, question_terms

CARDS = [
    Card("files:read_file", "files", "read_file", "Return the content of a file."),
    Card("files:list_directory", "files", "list_directory", "List what a folder holds."),
    Card("clock:get_current_time", "clock", "get_current_time", "Get the current time in a zone."),
    Card("weather:forecast", "weather", "forecast", "Weather of the next days for a city."),
    Card("office:convertToPdf", "office", "convertToPdf", "Turn a Word document into a PDF."),
    Card("mail:send", "mail", "send", "Send a message to somebody by e-mail."),
    read_card(
        {
            "serverName": "maps",
            "toolName": "geocode",
            "description": "Look a place up.",
            "params": [{"name": "address", "description": "street and town"}],
        }
    ),
]


def keys(search: ToolSearch, *queries: str, limit: int = 3) -> list[str]:
    return [found.card.key for found in search.search(queries, limit)]


@pytest.fixture(scope="module")
def hybrid() -> ToolSearch:
    return ToolSearch(CARDS)


@pytest.mark.contract("T14")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("what time is it in Tokyo", "clock:get_current_time"),
        ("convert document to pdf", "office:convertToPdf"),
        ("CONVERT_TO_PDF", "office:convertToPdf"),
        ("will it rain tomorrow", "weather:forecast"),
        ("street address to coordinates", "maps:geocode"),
        ("show /etc/hosts.txt please", "files:read_file"),
        ("今の時刻を知りたい", "clock:get_current_time"),
        ("ファイルの内容を読む", "files:read_file"),
    ],
)
def test_the_right_tool_is_first(hybrid: ToolSearch, query: str, best: str) -> None:
    assert keys(hybrid, query)[0] == best


@pytest.mark.contract("T14")
def test_each_of_several_queries_finds_its_tool(hybrid: ToolSearch) -> None:
    assert set(keys(hybrid, "weather forecast", "send an e-mail", limit=2)) == {
        "weather:forecast",
        "mail:send",
    }


def test_a_task_of_several_steps_finds_the_tool_of_each(hybrid: ToolSearch) -> None:
    task = "Look at the weather of the next days in Kyoto, then send it to my mother by e-mail."
    assert set(keys(hybrid, task, limit=2)) == {"weather:forecast", "mail:send"}


@pytest.mark.contract("T14")
def test_relevance_falls_and_stays_between_0_and_1(hybrid: ToolSearch) -> None:
    found = hybrid.search(["list a directory"], 7)
    scores = [one.relevance for one in found]
    assert scores == sorted(scores, reverse=True)
    assert 0.0 <= scores[-1] <= scores[0] <= 1.0
    assert "directory" in found[0].explanation


def test_what_is_not_allowed_is_not_there(hybrid: ToolSearch) -> None:
    found = hybrid.search(["weather"], 20, allow=lambda card: card.server != "weather")
    assert found
    assert all(one.card.server != "weather" for one in found)
    assert hybrid.search(["weather"], 20, allow=lambda card: False) == []


@pytest.mark.contract("T20")
def test_words_alone_know_only_words() -> None:
    search = ToolSearch(CARDS, Strategy.BM25)
    assert keys(search, "current time") == ["clock:get_current_time"]
    assert keys(search, "xyzzy") == []


@pytest.mark.contract("T20")
def test_no_strategy_lists_everything() -> None:
    assert len(ToolSearch(CARDS, Strategy.NULL).search(["anything"], 100)) == len(CARDS)


@pytest.mark.parametrize("query", ["", "   ", "\x00\ud800", "?" * 100_000, "/" * 50_000])
def test_odd_questions_are_answered(hybrid: ToolSearch, query: str) -> None:
    assert len(hybrid.search([query], 5)) <= 5


def test_an_empty_catalog_holds_nothing() -> None:
    assert ToolSearch([]).search(["anything"]) == []


def test_context_turns_the_scale(hybrid: ToolSearch) -> None:
    plain = hybrid.search(["send"], 7)
    leaning = hybrid.search(["send"], 7, context="weather forecast for a city")
    place = [one.card.key for one in plain].index("weather:forecast")
    assert [one.card.key for one in leaning].index("weather:forecast") <= place


def test_japanese_is_asked_by_its_english_words() -> None:
    terms = question_terms("天気を調べる")
    assert "weather" in terms
    assert all(term.isascii() for term in terms)


def test_reasons_are_in_the_words_of_the_question(hybrid: ToolSearch) -> None:
    first = hybrid.search(["converting documents"], 1)[0]
    assert first.explanation.startswith("words: converting, documents; meaning ")
    read = hybrid.search(["ファイルの内容を読む"], 1)[0]
    assert read.explanation.startswith("words: ファイル, 内容")


@pytest.mark.parametrize("strategy", [Strategy.HYBRID, Strategy.BM25])
@pytest.mark.parametrize("text", ["ファイルを削除する", "勤怠を登録する", "勤怠"])
def test_a_tool_described_in_japanese_shares_words_with_the_same_japanese(
    strategy: Strategy, text: str
) -> None:
    card = Card("office:x", "office", "x", text)
    found = ToolSearch([*CARDS, card], strategy).search([text], 1)[0]
    assert found.card == card
    assert found.explanation.startswith("words: ")


def test_a_tool_described_in_japanese_is_found_in_english() -> None:
    card = Card("office:x", "office", "x", "請求書を削除する")
    found = ToolSearch([*CARDS, card], Strategy.BM25).search(["delete an invoice"], 1)
    assert [one.card for one in found] == [card]
    assert "delete" in found[0].explanation
