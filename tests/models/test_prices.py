from __future__ import annotations

from evercontext.domain.model import Usage
from evercontext.models.prices import per_million, price


async def test_known_models_have_a_price_and_local_ones_none() -> None:
    spent = Usage(input_tokens=1_000_000, output_tokens=0)
    nano, mini = await price("gpt-4.1-nano", spent), await price("gpt-4.1-mini", spent)
    assert nano is not None
    assert mini is not None
    assert 0 < nano < mini
    assert await price("smollm2", spent) is None
    assert await price("gpt-4.1-nano", Usage()) is None


async def test_more_from_the_cache_than_was_sent_costs_what_was_sent() -> None:
    assert await price("gpt-4.1-nano", Usage(10, 1, 500)) == await price(
        "gpt-4.1-nano", Usage(10, 1, 10)
    )


def test_the_list_of_models_says_what_a_million_tokens_cost() -> None:
    """A7: issue 20, model lists with price."""
    assert per_million("gpt-4.1-nano") == (0.1, 0.4)
    assert per_million("nobody-knows-it") == (None, None)
