"""Moments named in a question: yesterday, last week, in May, 先週, 3日前.

A question about last week is about what was said last week. Nothing is left out because of it:
a memory from then is preferred, since people date things wrongly and tell them late.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march", "april apr", "may", "june jun", "july jul",
         "august aug", "september sep sept", "october oct", "november nov", "december dec"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: n for n, word in enumerate(_WORDS, start=1)} | {"a": 1, "an": 1}
_COUNT = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_KANJI = {"日": "day", "週間": "week", "か月": "month", "ヶ月": "month", "年": "year"}


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment up to another."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class Moments:
    """What a question says about time: spans, and months of an unnamed year."""

    spans: tuple[Span, ...] = ()
    months: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spans or self.months)


def find_moments(text: str, now: datetime) -> Moments:
    """Return the times a question names, counted from ``now``."""
    folded = unicodedata.normalize("NFKC", text).lower()
    spans: list[Span] = []
    for pattern, meaning in _PHRASES:
        spans += [meaning(found, now) for found in re.finditer(pattern, folded)]
    dated = [_span_of_month(year, month) for year, month in _dated_months(folded)]
    if dated:
        return Moments((*spans, *dated))
    years = [_span_of_year(int(y)) for y in re.findall(r"\b(?:in|during|since) (20\d\d)\b", folded)]
    years += [_span_of_year(int(y)) for y in re.findall(r"(20\d\d)年(?!\d)", folded)]
    return Moments((*spans, *years), tuple(_bare_months(folded)))


def _dated_months(text: str) -> list[tuple[int, int]]:
    english = re.findall(rf"\b({_MONTH})\b\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?,?\s+(20\d\d)", text)
    japanese = re.findall(r"(20\d\d)年\s*(\d{1,2})月", text)
    found = [(int(year), _MONTHS[name]) for name, year in english]
    return found + [(int(year), int(month)) for year, month in japanese if 1 <= int(month) <= 12]


def _bare_months(text: str) -> list[int]:
    # "may" and "march" are verbs too: they count after a preposition or beside a day only.
    before = rf"\b(?:in|during|of|last|this|since|early|late|mid|by|until)[ -]({_MONTH})\b"
    beside = rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? ({_MONTH})|({_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?)\b"
    names = re.findall(before, text) + [a or b for a, b in re.findall(beside, text)]
    japanese = [int(n) for n in re.findall(r"(?<!\d)(\d{1,2})月", text)]
    return [_MONTHS[name] for name in names] + [n for n in japanese if 1 <= n <= 12]


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days_back(count: int, length: int = 1) -> Callable[[re.Match[str], datetime], Span]:
    def meaning(found: re.Match[str], now: datetime) -> Span:
        start = _day(now) - timedelta(days=count)
        return Span(start, start + timedelta(days=length))

    return meaning


def _week(back: int) -> Callable[[re.Match[str], datetime], Span]:
    def meaning(found: re.Match[str], now: datetime) -> Span:
        monday = _day(now) - timedelta(days=now.weekday() + 7 * back)
        return Span(monday, monday + timedelta(days=7))

    return meaning


def _month(back: int) -> Callable[[re.Match[str], datetime], Span]:
    def meaning(found: re.Match[str], now: datetime) -> Span:
        year, month = divmod(now.year * 12 + now.month - 1 - back, 12)
        return _span_of_month(year, month + 1)

    return meaning


def _year(back: int) -> Callable[[re.Match[str], datetime], Span]:
    return lambda found, now: _span_of_year(now.year - back)


def _ago(found: re.Match[str], now: datetime) -> Span:
    count, unit = _number(found[1]), _KANJI.get(found[2], found[2])
    days = _DAYS[unit]
    middle = _day(now) - timedelta(days=min(count * days, 40_000))
    # "three weeks ago" is never meant to the day.
    slack = timedelta(days=days // 2)
    return Span(middle - slack, middle + slack + timedelta(days=1))


def _past(found: re.Match[str], now: datetime) -> Span:
    days = _DAYS[_KANJI.get(found[2], found[2])]
    return Span(now - timedelta(days=min(_number(found[1]) * days, 40_000)), now)


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)


def _span_of_month(year: int, month: int) -> Span:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return Span(datetime(year, month, 1, tzinfo=UTC), datetime(*following, 1, tzinfo=UTC))


def _span_of_year(year: int) -> Span:
    return Span(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))


Meaning = Callable[[re.Match[str], datetime], Span]
_UNITS = "day|week|month|year"
_JA_UNITS = "|".join(_KANJI)
_PHRASES: tuple[tuple[str, Meaning], ...] = (
    (r"\btoday\b|\bthis morning\b|今日|本日|今朝", _days_back(0)),
    (r"\byesterday\b|\blast night\b|(?<!一)昨日|昨晩|昨夜", _days_back(1)),
    (r"\bday before yesterday\b|一昨日|おととい", _days_back(2)),
    (r"\bthis week\b|今週", _week(0)),
    (r"\blast week\b|\bprevious week\b|(?<!先)先週", _week(1)),
    (r"\bweek before last\b|先々週", _week(2)),
    (r"\bthis month\b|今月", _month(0)),
    (r"\blast month\b|\bprevious month\b|(?<!先)先月", _month(1)),
    (r"先々月", _month(2)),
    (r"\bthis year\b|今年", _year(0)),
    (r"\blast year\b|昨年|去年", _year(1)),
    (r"\brecently\b|\blately\b|最近|この間", _days_back(14, 15)),
    (rf"\b{_COUNT} ({_UNITS})s? ago\b", _ago),
    (rf"(?<!\d)(\d{{1,3}})({_JA_UNITS})(?:ほど|くらい|ぐらい)?前", _ago),
    (rf"\b(?:past|last) {_COUNT} ({_UNITS})s?\b", _past),
    (rf"(?:過去|ここ|この)(\d{{1,3}})({_JA_UNITS})", _past),
)

_DATED = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?\s+({_MONTH})\.?,?\s+(\d{{4}})", re.I)
_AMERICAN = re.compile(rf"({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})", re.I)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})\s*(am|pm)?", re.I)


def read_moment(text: str) -> datetime | None:
    """Return a written date and time in UTC: ISO, ``8 May, 2023``, ``1:56 pm on May 8, 2023``."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        if found := _DATED.search(text):
            day, month, year = int(found[1]), _MONTHS[found[2].lower()], int(found[3])
        elif found := _AMERICAN.search(text):
            day, month, year = int(found[2]), _MONTHS[found[1].lower()], int(found[3])
        else:
            return None
        hour, minute = _clock(text)
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None


def _clock(text: str) -> tuple[int, int]:
    found = _CLOCK.search(text)
    if not found:
        return 0, 0
    hour = int(found[1]) % 12 if found[3] else int(found[1])
    return hour + (12 if (found[3] or "").lower() == "pm" else 0), int(found[2])
