from __future__ import annotations

from evercontext.files.clock import Clock


def test_no_instant_is_told_twice_by_a_clock_that_ticks_slowly_or_is_set_back() -> None:
    shown = iter([7_000, 7_000, 7_000, 3_000, 9_000])
    clock = Clock(lambda: next(shown))
    assert [clock.instant() for _ in range(5)] == [7_000, 7_001, 7_002, 7_003, 9_000]
