"""Read days as people write them: 17th of January, 21.01.2024, 2024年1月21日, first week of May."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_YEAR = r"((?:19|20|21)\d\d)"
_MAYBE_YEAR = rf"(?:,?\s+{_YEAR}(?!\d))?"
_DAY = r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?"
_NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_NTH |= {numeral: n for n, numeral in enumerate("一二三四五", start=1)}
_THIRDS = {
    **dict.fromkeys(("early", "beginning of", "start of", "上旬", "初旬", "初め", "始め", "頭"), 1),
    **dict.fromkeys(("mid", "middle of", "中旬", "半ば"), 2),
    **dict.fromkeys(("late", "end of", "下旬", "末"), 3),
}
_THIRD = "|".join(_THIRDS)
_YEARS_BACK = 20
"""A day without a year is that day of any of so many years."""

Days = tuple[int | None, int, int, int]
"""A year or none, a month, the first and the last day."""


def last_day(year: int | None, month: int) -> int:
    """Return the last day of a month; of an unnamed year, the last that it ever has."""
    return calendar.monthrange(year or 2024, month)[1]


def _plain(year: int, month: int, day: int) -> Callable[[re.Match[str]], list[Days]]:
    """Read groups by their numbers, the month as a name or a number."""

    def read(match: re.Match[str]) -> list[Days]:
        number = int(match[day])
        return [(_year(match[year]), _month(match[month]), number, number)]

    return read


def _either(match: re.Match[str]) -> list[Days]:
    """05/08/2023 is the fifth of August here and the eighth of May there."""
    a, b, year = int(match[1]), int(match[2]), int(match[3])
    return [(year, b, a, a), (year, a, b, b)]


def _week(match: re.Match[str]) -> list[Days]:
    month, year = _month(match[2]), _year(match[3])
    return [_nth_week(match[1], year, month)]


def _week_ja(match: re.Match[str]) -> list[Days]:
    return [_nth_week(match[3] or "last", _year(match[1]), int(match[2]))]


def _nth_week(nth: str, year: int | None, month: int) -> Days:
    last = last_day(year, month)
    number = _NTH.get(nth) or (int(nth) if nth.isdecimal() else 0)
    if not number:
        return year, month, last - 6, last
    return year, month, 7 * number - 6, min(7 * number, last)


def _third(match: re.Match[str]) -> list[Days]:
    return [_part(_THIRDS[match[1]], _year(match[3]), _month(match[2]))]


def _third_ja(match: re.Match[str]) -> list[Days]:
    return [_part(_THIRDS[match[3]], _year(match[1]), int(match[2]))]


def _part(number: int, year: int | None, month: int) -> Days:
    last = last_day(year, month) if number == 3 else 10 * number
    return year, month, 10 * number - 9, last


def _year(text: str | None) -> int | None:
    return int(text) if text else None


def _month(text: str) -> int:
    return MONTHS.get(text) or int(text)


_JA_MONTH = rf"(?:{_YEAR}年\s*)?(?<!\d)(\d{{1,2}})月"
_WRITTEN: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Days]]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"(?<!\d){_YEAR}([-/.])(\d{{1,2}})\2(\d{{1,2}})(?!\d)", _plain(1, 3, 4)),
        (rf"(?<![\d.])(\d{{1,2}})\.\s?(\d{{1,2}})\.\s?{_YEAR}(?!\d)", _plain(3, 2, 1)),
        (rf"(?<![\d/])(\d{{1,2}})/(\d{{1,2}})/{_YEAR}(?!\d)", _either),
        (rf"{_JA_MONTH}\s*(\d{{1,2}})日", _plain(1, 2, 3)),
        (rf"{_JA_MONTH}(?:の)?第([1-5一二三四五])週", _week_ja),
        (rf"{_JA_MONTH}の(?:最終|最後の)(週)", _week_ja),
        (rf"{_JA_MONTH}(?:の)?({_THIRD})", _third_ja),
        (
            rf"\b({'|'.join(k for k in _NTH if k.isascii())}|last) week (?:of|in) ({MONTH})\b"
            rf"\.?{_MAYBE_YEAR}",
            _week,
        ),
        (rf"\b({_THIRD})[ -]({MONTH})\b\.?{_MAYBE_YEAR}", _third),
        (rf"{_DAY}(?:\s+of)?\s+({MONTH})\b\.?{_MAYBE_YEAR}", _plain(3, 2, 1)),
        (rf"\b({MONTH})\b\.?\s+(?:the\s+)?{_DAY}(?![\d:])\b{_MAYBE_YEAR}", _plain(3, 1, 2)),
    )
)


def take_days(text: str) -> tuple[list[Days], str]:
    """Return the days that a text names, in small letters, and the text without them."""
    taken: list[Days] = []
    for pattern, read in _WRITTEN:

        def take(match: re.Match[str], read: Callable[[re.Match[str]], list[Days]] = read) -> str:
            days = [own for own in read(match) if _exists(own)]
            taken.extend(days)
            return " " if days else match[0]

        text = pattern.sub(take, text)
    return taken, text


def _exists(days: Days) -> bool:
    year, month, first, last = days
    return 1 <= month <= 12 and 1 <= first <= last <= last_day(year, month)


def spans_of(days: Days, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield from when to when those days are, by the clock of ``now``; without a year, in many."""
    year, month, first, last = days
    for each in (year,) if year else range(now.year - _YEARS_BACK, now.year + 2):
        if first > last_day(each, month):
            continue
        start = datetime(each, month, first, tzinfo=now.tzinfo)
        yield start, start + timedelta(days=min(last, last_day(each, month)) - first + 1)
