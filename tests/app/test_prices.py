from __future__ import annotations

from evercontext.app.prices import price
from evercontext.domain.model import Usage


def test_known_models_have_a_price_and_local_ones_none() -> None:
    spent = Usage(input_tokens=1_000_000, output_tokens=0)
    nano, mini = price("gpt-4.1-nano", spent), price("gpt-4.1-mini", spent)
    assert nano is not None
    assert mini is not None
    assert 0 < nano < mini
    assert price("smollm2", spent) is None
    assert price("gpt-4.1-nano", Usage()) is None


def test_more_from_the_cache_than_was_sent_costs_what_was_sent() -> None:
    assert price("gpt-4.1-nano", Usage(10, 1, 500)) == price("gpt-4.1-nano", Usage(10, 1, 10))
