"""Finding tools by words, by meaning and across languages."""

from __future__ import annotations

import pytest

from evercontext.catalog.tool_entry import CatalogEntry, read_entry
from evercontext.catalog.tool_search import Strategy, ToolSearch, question_terms

CARDS = [
    CatalogEntry("files:read_file", "files", "read_file", "Return the content of a file."),
    CatalogEntry("files:list_directory", "files", "list_directory", "List what a folder holds."),
    CatalogEntry(
        "clock:get_current_time", "clock", "get_current_time", "Get the current time in a zone."
    ),
    CatalogEntry("weather:forecast", "weather", "forecast", "Weather of the next days for a city."),
    CatalogEntry(
        "office:convertToPdf", "office", "convertToPdf", "Turn a Word document into a PDF."
    ),
    CatalogEntry("mail:send", "mail", "send", "Send a message to somebody by e-mail."),
    read_entry(
        {
            "serverName": "maps",
            "toolName": "geocode",
            "description": "Look a place up.",
            "params": [{"name": "address", "description": "street and town"}],
        }
    ),
]


def keys(search: ToolSearch, *queries: str, limit: int = 3) -> list[str]:
    return [found.entry.key for found in search.search(queries, limit)]


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
    found = hybrid.search(["weather"], 20, allow=lambda entry: entry.server != "weather")
    assert found
    assert all(one.entry.server != "weather" for one in found)
    assert hybrid.search(["weather"], 20, allow=lambda entry: False) == []


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
    place = [one.entry.key for one in plain].index("weather:forecast")
    assert [one.entry.key for one in leaning].index("weather:forecast") <= place


def test_japanese_is_asked_by_its_english_words() -> None:
    terms = question_terms("天気を調べる")
    assert "weather" in terms
    assert all(term.isascii() or term.startswith("ja:") for term in terms)


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
    entry = CatalogEntry("office:x", "office", "x", text)
    found = ToolSearch([*CARDS, entry], strategy).search([text], 1)[0]
    assert found.entry == entry
    assert found.explanation.startswith("words: ")


def test_a_tool_described_in_japanese_is_found_in_english() -> None:
    entry = CatalogEntry("office:x", "office", "x", "請求書を削除する")
    found = ToolSearch([*CARDS, entry], Strategy.BM25).search(["delete an invoice"], 1)
    assert [one.entry for one in found] == [entry]
    assert "delete" in found[0].explanation


TWINS = [
    (
        "get_weather",
        "Get the weather of a city.",
        "都市の天気を取得します。",
        "大阪の天気を知りたい",
    ),
    ("send_mail", "Send an e-mail to somebody.", "メールを送信します。", "メールを送って"),
    (
        "read_file",
        "Read the content of a file.",
        "ファイルの内容を読み取ります。",
        "ファイルを読む",
    ),
    ("list_users", "List all users.", "ユーザーの一覧を返します。", "ユーザー一覧"),
    ("stock_price", "Get the stock price.", "株価を取得します。", "トヨタの株価は？"),
    ("delete_row", "Delete a record.", "レコードを削除します。", "レコードを消す"),
]


@pytest.mark.contract("T14")
@pytest.mark.parametrize("strategy", [Strategy.HYBRID, Strategy.BM25])
@pytest.mark.parametrize("first", ["japanese", "english"])
def test_of_two_alike_the_one_in_the_language_of_the_question_comes_first(
    strategy: Strategy, first: str
) -> None:
    entries = []
    for name, english, japanese, _ in TWINS:
        pair = [
            CatalogEntry(f"a:{name}", "a", name, english),
            CatalogEntry(f"b:{name}", "b", name, japanese),
        ]
        entries += pair if first == "english" else pair[::-1]
    search = ToolSearch(entries, strategy)
    for name, english, _, question in TWINS:
        assert keys(search, question)[0] == f"b:{name}", question
        assert keys(search, english)[0] == f"a:{name}", english


def test_a_tool_described_in_chinese_is_found_in_both_languages() -> None:
    entries = [
        *CARDS,
        CatalogEntry("hub:top", "hub", "top", "获取最新新闻资讯，提供链接"),
        CatalogEntry("rail:left", "rail", "left", "查询列车时间信息"),
    ]
    search = ToolSearch(entries)
    for question, best in [
        ("latest news", "hub:top"),
        ("最新のニュースを探して", "hub:top"),
        ("when does the train leave", "rail:left"),
        ("列車の時間", "rail:left"),
    ]:
        assert keys(search, question)[0] == best, question


def test_a_quoted_title_does_not_choose_the_tool() -> None:
    entries = [
        *CARDS,
        CatalogEntry("films:get_film", "films", "get_film", "Return details of a film."),
        CatalogEntry(
            "books:write_fiction", "books", "write_fiction", "Write a piece of pulp fiction."
        ),
    ]
    found = keys(ToolSearch(entries), 'Tell me the details of the film "Pulp Fiction".')
    assert found[0] == "films:get_film"
