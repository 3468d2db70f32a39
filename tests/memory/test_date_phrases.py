from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from evercontext.memory.date_phrases import day_of, find_date_ranges, parse_moment

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
"""A Wednesday."""


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.contract("R54")
@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("What did we do yesterday?", "2026-05-19", "2026-05-18"),
        ("昨日は何をしましたか", "2026-05-19", "2026-05-20"),
        ("一昨日の会議", "2026-05-18", "2026-05-19"),
        ("today's plan", "2026-05-20", "2026-05-19"),
        ("decided last week", "2026-05-11", "2026-05-18"),
        ("先週決めたこと", "2026-05-17", "2026-05-18"),
        ("先々週の作業", "2026-05-05", "2026-05-11"),
        ("this week", "2026-05-18", "2026-05-17"),
        ("last month", "2026-04-30", "2026-05-01"),
        ("先月のリリース", "2026-04-01", "2026-03-31"),
        ("last year", "2025-07-01", "2026-01-01"),
        ("去年の夏", "2025-07-01", "2026-01-01"),
        ("three days ago", "2026-05-17", "2026-05-19"),
        ("３日前のこと", "2026-05-17", "2026-05-19"),
        ("2 weeks ago", "2026-05-06", "2026-04-20"),
        ("2か月前", "2026-03-21", "2026-05-10"),
        ("in the past 7 days", "2026-05-15", "2026-05-01"),
        ("in March 2025", "2025-03-31", "2026-03-05"),
        ("2025年3月に", "2025-03-01", "2026-03-05"),
        ("during 2024", "2024-12-31", "2025-01-01"),
        ("きのうの話", "2026-05-19", "2026-05-20"),
        ("the day before yesterday", "2026-05-18", "2026-05-19"),
        ("三日前のこと", "2026-05-17", "2026-05-19"),
        ("数日前に", "2026-05-17", "2026-05-19"),
        ("二週間前の予定", "2026-05-06", "2026-04-20"),
        ("3ヵ月前", "2026-02-19", "2026-04-20"),
        ("a few days ago", "2026-05-17", "2026-05-19"),
        ("a couple of weeks ago", "2026-05-06", "2026-05-19"),
        ("一昨年の計画", "2024-06-01", "2025-06-01"),
        ("What did you do last Monday?", "2026-05-18", "2026-05-19"),
        ("the talk on Thursday", "2026-05-14", "2026-05-21"),
        ("水曜日の会議", "2026-05-13", "2026-05-20"),
        ("先週の金曜日", "2026-05-15", "2026-05-18"),
        ("last weekend", "2026-05-17", "2026-05-18"),
        ("週末に行った所", "2026-05-16", "2026-05-15"),
    ],
)
def test_a_time_is_understood(text: str, inside: str, outside: str) -> None:
    spans = find_date_ranges(text, NOW).spans
    assert any(day(inside) in span for span in spans)
    assert not any(day(outside) in span for span in spans)


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("When did she camp in June?", (6,)),
        ("what happened on 5 May", ()),
        ("6月に何がありましたか", (6,)),
        ("may I go, and march on?", ()),
        ("13月", ()),
    ],
)
def test_a_month_without_a_year_is_that_month_of_any_year(
    text: str, months: tuple[int, ...]
) -> None:
    assert find_date_ranges(text, NOW).months == months


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What happened on the 17th of January 2024?", "2024-01-17", "2024-01-17"),
        ("on January 17th, 2024", "2024-01-17", "2024-01-17"),
        ("2024年1月21日の会議", "2024-01-21", "2024-01-21"),
        ("２０２４年１月２１日", "2024-01-21", "2024-01-21"),
        ("am 21.01.2024 besprochen", "2024-01-21", "2024-01-21"),
        ("2024-01-21", "2024-01-21", "2024-01-21"),
        ("2024/1/21 の議事録", "2024-01-21", "2024-01-21"),
        ("13/01/2024", "2024-01-13", "2024-01-13"),
        ("in the first week of March", "2026-03-01", "2026-03-07"),
        ("the last week of February 2024", "2024-02-23", "2024-02-29"),
        ("2024年3月第2週", "2024-03-08", "2024-03-14"),
        ("early March 2024", "2024-03-01", "2024-03-10"),
        ("3月下旬の作業", "2026-03-21", "2026-03-31"),
        ("what happened on 5 May", "2026-05-05", "2026-05-05"),
        ("5月5日", "2025-05-05", "2025-05-05"),
    ],
)
def test_a_day_is_a_day_and_not_its_month(text: str, first: str, last: str) -> None:
    """25.4: days named months, so that all of January spoke for an answer."""
    moments = find_date_ranges(text, NOW)
    assert not moments.months

    def named(moment: datetime) -> bool:
        return any(moment in span for span in moments.spans)

    one = timedelta(days=1)
    assert [
        named(day(first) - one),
        named(day(first)),
        named(day(last)),
        named(day(last) + one),
    ] == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "days"), [("31 February 2024", [29]), ("2024年2月31日", [29]), ("00.00.2024", [])]
)
def test_a_day_that_never_was_is_no_day(text: str, days: list[int]) -> None:
    """Its month may be meant, if there is one."""
    assert [(span.end - span.start).days for span in find_date_ranges(text, NOW).spans] == days


def test_yesterday_is_that_of_the_asker_s_clock() -> None:
    tokyo = datetime(2026, 5, 20, 8, tzinfo=timezone(timedelta(hours=9)))
    (span,) = find_date_ranges("昨日の会議", tokyo).spans
    assert datetime(2026, 5, 18, 20, tzinfo=UTC) in span
    assert datetime(2026, 5, 19, 20, tzinfo=UTC) not in span
    (month,) = find_date_ranges("this month", tokyo).spans
    assert datetime(2026, 4, 30, 16, tzinfo=UTC) in month


@pytest.mark.parametrize(
    "text", ["", "why?", "9999999999 days ago", "0年0月", "99999年前", "毎週末", "毎週月曜日"]
)
def test_nonsense_names_no_time(text: str) -> None:
    assert not find_date_ranges(text, NOW)


JST = timezone(timedelta(hours=9))


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=JST)),
        ("May 8, 2023", datetime(2023, 5, 8, tzinfo=JST)),
        ("2023-05-08T13:56:00+02:00", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("2023-05-08", datetime(2023, 5, 8, tzinfo=JST)),
        ("2023/05/08 13:56", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("2023年5月8日", datetime(2023, 5, 8, tzinfo=JST)),
        ("2023年5月8日 13時56分", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("08.05.2023 13:56:07", datetime(2023, 5, 8, 13, 56, 7, tzinfo=JST)),
        ("Mon, 08 May 2023 13:56:00 +0200", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("1683554160", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("1683554160.0", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("1683554160000", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("1683554160000000", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("20230508135600", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("202305081356", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("20230508", datetime(2023, 5, 8, tzinfo=JST)),
        ("2023年5月8日 午後1時56分", datetime(2023, 5, 8, 13, 56, tzinfo=JST)),
        ("2023年5月8日午前0時5分7秒", datetime(2023, 5, 8, 0, 5, 7, tzinfo=JST)),
        ("2023年5月8日(月) 13時", datetime(2023, 5, 8, 13, tzinfo=JST)),
        ("2023年5月8日 13時5分", datetime(2023, 5, 8, 13, 5, tzinfo=JST)),
        ("2023年5月8日 午後１時半", datetime(2023, 5, 8, 13, 30, tzinfo=JST)),
        ("8 May 2023, 1 pm", datetime(2023, 5, 8, 13, tzinfo=JST)),
        ("1pm on Monday, 8 May 2023", datetime(2023, 5, 8, 13, tzinfo=JST)),
        ("12 a.m. on 8 May 2023", datetime(2023, 5, 8, tzinfo=JST)),
        ("13:56 UTC on 8 May 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("08.05.2023 13:56Z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("Mon, 8 May 2023 13:56:00 GMT", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("Mon, 8 May 2023 13:56:00 +0200 (CEST)", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("8 May 2023 13:56 GMT+02:00", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("05/05/2023", datetime(2023, 5, 5, tzinfo=JST)),
        ("2023/05/08 13:56 EST", None),
        ("8 May 2023 13:56 JST", None),
        ("8 May 2023 13:56 Europe/Berlin", None),
        ("8 May 2023 13:56 UTC+9", None),
        ("2023年5月8日 正午", None),
        ("noon on 8 May 2023", None),
        ("8 May 2023, pm", None),
        ("8 May 2023, 15:00 am", None),
        ("8 May 2023, 13h56", None),
        ("8 May 2023, 13:00 to 14:00", None),
        ("20231308135600", None),
        ("20230508113", None),
        ("05/08/2023", None),
        ("May 2023", None),
        ("2023/05/08 25:99", None),
        ("31 February, 2023", None),
        ("soon", None),
    ],
)
def test_a_written_date_is_read(text: str, moment: datetime | None) -> None:
    assert parse_moment(text) == moment


@pytest.mark.usefixtures("tokyo")
def test_a_day_is_one_of_this_machine() -> None:
    assert day_of("2023-05-07T16:30:00.000+00:00") == "2023-05-08"
    assert [day_of(odd) for odd in ("0001-01-01T00:00+00:00", "9999-12-31T23:00+00:00", "?")] == [
        "0001-01-01",
        "9999-12-31",
        "?",
    ]
