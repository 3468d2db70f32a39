from __future__ import annotations

import pytest

from evercontext.context.latency_warning import FEWEST, LatencyWatch


@pytest.mark.contract("R52")
def test_slow_contexts_are_said_once_until_they_were_fast_again() -> None:
    watch = LatencyWatch()
    said = [watch.observe(150.0) for _ in range(FEWEST + 10)]
    assert [n for n, warning in enumerate(said) if warning] == [FEWEST - 1]
    assert "150 ms" in str(said[FEWEST - 1])
    assert not any(watch.observe(5.0) for _ in range(100))
    assert any(watch.observe(150.0) for _ in range(20))


@pytest.mark.contract("R52")
def test_a_few_slow_ones_are_no_reason() -> None:
    watch = LatencyWatch()
    assert not any(watch.observe(500.0 if n % 50 == 40 else 20.0) for n in range(200))
