from __future__ import annotations

from evercontext.memory.calendar_days import take_days


def test_what_is_taken_is_no_longer_there() -> None:
    days, rest = take_days("notes of 3 may and 2024-01-21, in june")
    assert days == [(2024, 1, 21, 21), (None, 5, 3, 3)]
    assert "june" in rest
    assert "may" not in rest


def test_a_date_of_two_readings_is_both() -> None:
    assert take_days("05/08/2023")[0] == [(2023, 8, 5, 5), (2023, 5, 8, 8)]
    assert take_days("25/08/2023")[0] == [(2023, 8, 25, 25)]
