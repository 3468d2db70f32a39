"""Find phrases for dates in a question: yesterday, last week, in May, 先週, 3日前.

A question about last week is about what was said last week. Nothing is left out because of it:
a memory from then is preferred, since people date things wrongly and tell them late.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from evercontext.memory.calendar_days import MONTH, MONTHS, spans_of, take_days

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {
    **{word: n for n, word in enumerate(_WORDS, start=1)},
    **{numeral: n for n, numeral in enumerate("一二三四五六七八九十", start=1)},
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "a few": 3,
    "several": 4,
    "数": 3,
}
_COUNT = rf"(\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_JA_COUNT = r"(?<![\d一二三四五六七八九十])(\d{1,3}|[一二三四五六七八九十数])"
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_KANJI = {
    "日": "day",
    "週間": "week",
    "週": "week",
    "か月": "month",
    "ヶ月": "month",
    "カ月": "month",
    "ヵ月": "month",
    "ケ月": "month",
    "年": "year",
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class DateSpan:
    """From one moment up to another."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class DateRanges:
    """What a question says about time: spans, and months of an unnamed year."""

    spans: tuple[DateSpan, ...] = ()
    months: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spans or self.months)


def find_date_ranges(text: str, now: datetime) -> DateRanges:
    """Return the times a question names, counted from ``now`` by the clock of its time zone."""
    folded = unicodedata.normalize("NFKC", text).lower()
    spans: list[DateSpan] = []
    for pattern, meaning in _PHRASES:
        spans += [meaning(match, now) for match in re.finditer(pattern, folded)]
    days, folded = take_days(folded)
    spans += [DateSpan(*edges) for own in days for edges in spans_of(own, now)]
    dated = [_span_of_month(year, month, now) for year, month in _dated_months(folded)]
    if dated:
        return DateRanges((*spans, *dated))
    years = re.findall(r"\b(?:in|during|since) (20\d\d)\b", folded)
    years += re.findall(r"(20\d\d)年(?!\d)", folded)
    spans += [_span_of_year(int(year), now) for year in years]
    return DateRanges(tuple(spans), tuple(_bare_months(folded)))


def _dated_months(text: str) -> list[tuple[int, int]]:
    english = re.findall(rf"\b({MONTH})\b\.?(?: of)?,?\s+(20\d\d)", text)
    japanese = re.findall(r"(20\d\d)年\s*(\d{1,2})月", text)
    match = [(int(year), MONTHS[name]) for name, year in english]
    return match + [(int(year), int(month)) for year, month in japanese if 1 <= int(month) <= 12]


def _bare_months(text: str) -> list[int]:
    # "may" and "march" are verbs too: they count after a preposition only.
    names = re.findall(rf"\b(?:in|during|of|last|this|since|by|until)[ -]({MONTH})\b", text)
    japanese = [int(n) for n in re.findall(r"(?<!\d)(\d{1,2})月", text)]
    return [MONTHS[name] for name in names] + [n for n in japanese if 1 <= n <= 12]


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days_back(count: int, length: int = 1) -> Callable[[re.Match[str], datetime], DateSpan]:
    def meaning(match: re.Match[str], now: datetime) -> DateSpan:
        start = _day(now) - timedelta(days=count)
        return DateSpan(start, start + timedelta(days=length))

    return meaning


def _week(back: int) -> Callable[[re.Match[str], datetime], DateSpan]:
    def meaning(match: re.Match[str], now: datetime) -> DateSpan:
        monday = _day(now) - timedelta(days=now.weekday() + 7 * back)
        return DateSpan(monday, monday + timedelta(days=7))

    return meaning


def _month(back: int) -> Callable[[re.Match[str], datetime], DateSpan]:
    def meaning(match: re.Match[str], now: datetime) -> DateSpan:
        year, month = divmod(now.year * 12 + now.month - 1 - back, 12)
        return _span_of_month(year, month + 1, now)

    return meaning


def _year(back: int) -> Callable[[re.Match[str], datetime], DateSpan]:
    return lambda match, now: _span_of_year(now.year - back, now)


def _weekday(match: re.Match[str], now: datetime) -> DateSpan:
    """The latest such day before today."""
    name = match[1]
    number = _WEEKDAYS.index(name) if name in _WEEKDAYS else "月火水木金土日".index(name)
    start = _day(now) - timedelta(days=(now.weekday() - number - 1) % 7 + 1)
    return DateSpan(start, start + timedelta(days=1))


def _weekend(match: re.Match[str], now: datetime) -> DateSpan:
    saturday = _day(now) - timedelta(days=now.weekday() + 2)
    return DateSpan(saturday, saturday + timedelta(days=2))


def _ago(match: re.Match[str], now: datetime) -> DateSpan:
    count, unit = _number(match[1]), _KANJI.get(match[2], match[2])
    days = _DAYS[unit]
    middle = _day(now) - timedelta(days=min(count * days, 40_000))
    # "three weeks ago" is never meant to the day.
    slack = timedelta(days=days // 2)
    return DateSpan(middle - slack, middle + slack + timedelta(days=1))


def _past(match: re.Match[str], now: datetime) -> DateSpan:
    days = _DAYS[_KANJI.get(match[2], match[2])]
    return DateSpan(now - timedelta(days=min(_number(match[1]) * days, 40_000)), now)


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)


def _span_of_month(year: int, month: int, now: datetime) -> DateSpan:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    zone = now.tzinfo
    return DateSpan(datetime(year, month, 1, tzinfo=zone), datetime(*following, 1, tzinfo=zone))


def _span_of_year(year: int, now: datetime) -> DateSpan:
    zone = now.tzinfo
    return DateSpan(datetime(year, 1, 1, tzinfo=zone), datetime(year + 1, 1, 1, tzinfo=zone))


Meaning = Callable[[re.Match[str], datetime], DateSpan]
_UNITS = "day|week|month|year"
_JA_UNITS = "|".join(sorted(_KANJI, key=len, reverse=True))
_PHRASES: tuple[tuple[str, Meaning], ...] = (
    (r"\btoday\b|\bthis morning\b|今日|本日|今朝", _days_back(0)),
    (r"(?<!before )\byesterday\b|\blast night\b|(?<!一)昨日|昨晩|昨夜", _days_back(1)),
    (r"(?<![とた])きのう(?=[はもの、]|$)", _days_back(1)),
    (r"\bday before yesterday\b|一昨日|おととい", _days_back(2)),
    (r"\bthis week\b|今週", _week(0)),
    (r"\blast week\b|\bprevious week\b|(?<!先)先週", _week(1)),
    (r"\bweek before last\b|先々週", _week(2)),
    (r"\bthis month\b|今月", _month(0)),
    (r"\blast month\b|\bprevious month\b|(?<!先)先月", _month(1)),
    (r"先々月", _month(2)),
    (r"\bthis year\b|今年", _year(0)),
    (r"\blast year\b|(?<!一)昨年|去年", _year(1)),
    (r"\byear before last\b|一昨年|おととし", _year(2)),
    (rf"\b(?:last|on|this past) ({'|'.join(_WEEKDAYS)})\b", _weekday),
    (r"(?<!先週の)(?<!今週の)(?<!毎週)([月火水木金土日])曜", _weekday),
    (r"\b(?:last|this past) weekend\b|先週末|(?<![今毎先])週末", _weekend),
    (r"\brecently\b|\blately\b|最近|この間", _days_back(14, 15)),
    (rf"\b{_COUNT} ({_UNITS})s? ago\b", _ago),
    (rf"{_JA_COUNT}({_JA_UNITS})(?:ほど|くらい|ぐらい)?前", _ago),
    (rf"\b(?:past|last) {_COUNT} ({_UNITS})s?\b", _past),
    (rf"(?:過去|ここ|この){_JA_COUNT}({_JA_UNITS})", _past),
)

_CLOCK = re.compile(
    r"(午前|午後)?\s*(?<![\d+:-])(\d{1,2})"
    r"(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?!\d)|(時)(?:\s*(\d{1,2})分?(?:\s*(\d{1,2})秒)?|(半))?)?"
    r"\s*(am\b|pm\b|a\.m\.?|p\.m\.?)?"
)
_ZONE = re.compile(
    r"(?:\b(?:utc|gmt))?\s?([+-])(\d{2}):?(\d{2})(?!\d)(?:\s*\([a-z ]*\))?|\b(?:utc|gmt)\b"
    r"|(?<![a-z])z\s*$"
)
_UNREAD = re.compile(
    r"\d|[時午]|\b(?:am|pm|noon|midnight|utc|gmt|[ecmp]t|(?:[aecmpjkhbin]|ak|ae|ac|aw|nz|sa)[sd]t"
    r"|cet|cest|eet|eest|wet|msk|sgt|hkt|pht|wib|[a-z]+/[a-z_]+)\b"
)
"""What says more about the time than was read: it would be another moment."""
_EPOCH = re.compile(r"(?:\d{9,10}|\d{13}|\d{16}|\d{19})(?:\.\d*)?", re.A)
_STAMP = re.compile(r"\d{12}(?:\d\d)?", re.A)
_THOUSANDS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""So large a number counts such parts of a second."""


def parse_moment(written: str) -> datetime | None:
    """Return a written date and time in UTC, ``None`` if it is none, or could be two.

    ISO, ``8 May, 2023``, ``1:56 pm on May 8, 2023``, ``2023/05/08 13:56``, ``08.05.2023``,
    ``2023年5月8日 午後1時``, ``20230508135600``, or seconds or milliseconds since 1970. Without a
    zone it is that of this machine, as the asker's yesterday is.
    """
    text = unicodedata.normalize("NFKC", written).strip().lower()
    if _EPOCH.fullmatch(text):
        return _of_epoch(float(text))
    try:
        if _STAMP.fullmatch(text):
            return _in_utc(datetime.strptime(text.ljust(14, "0"), "%Y%m%d%H%M%S"))
        if text.isdecimal() and len(text) != len("20230508"):
            return None
        return _in_utc(datetime.fromisoformat(text.upper()))
    except ValueError:
        pass
    days, rest = take_days(text)
    # 05/05/2023 is the same day in either reading.
    if len(set(days)) != 1:
        return None
    year, month, day, last = days[0]
    if year is None or day != last:
        return None
    try:
        zone, rest = _take_zone(rest)
        clock, rest = _take_clock(rest)
        if _UNREAD.search(rest):
            return None
        return _in_utc(datetime(year, month, day, *clock, tzinfo=zone))
    except ValueError:
        return None


def _of_epoch(number: float) -> datetime | None:
    for least, parts in _THOUSANDS:
        if number >= least:
            number /= parts
            break
    try:
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _take_zone(text: str) -> tuple[timezone | None, str]:
    """Return the zone that a text names, and the text without it."""
    match = _ZONE.search(text)
    if match is None:
        return None, text
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    if not match[1]:
        return UTC, rest
    size = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-size if match[1] == "-" else size), rest


def day_of(moment: str) -> str:
    """The day of a kept moment where we are, such as ``2023-05-08``."""
    try:
        return datetime.fromisoformat(moment).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError):
        return moment[:10]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        # At the ends of the calendar no zone can be applied.
        return moment.replace(tzinfo=UTC)


def _take_clock(text: str) -> tuple[tuple[int, int, int], str]:
    """Return hour, minute and second that a text names, and the text without them."""
    for match in _CLOCK.finditer(text):
        before, number, minute, second, hours, minutes, seconds, half_past, after = match.groups()
        if not (before or minute or hours or after):
            continue
        hour = int(number)
        if before or after:
            afternoon = before == "午後" or (after or "").startswith("p")
            if hour > 12 and not afternoon:
                raise ValueError(f"{hour} is no hour before noon")
            hour = hour % 12 + (12 if afternoon else 0)
        clock = hour, 30 if half_past else int(minute or minutes or 0), int(second or seconds or 0)
        return clock, f"{text[: match.start()]} {text[match.end() :]}"
    return (0, 0, 0), text
