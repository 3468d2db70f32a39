"""Compute what a reply cost, from a packaged price list."""

from __future__ import annotations

import asyncio

from evercontext.domain.model import Usage


async def price(model: str, usage: Usage) -> float | None:
    """US dollars for one reply, or ``None`` where no price is known (local models)."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    # The first one reads a long table of prices, which takes more than half a second.
    return await asyncio.to_thread(_price, model, usage)


def _price(model: str, usage: Usage) -> float | None:
    import genai_prices

    spent = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
    )
    try:
        return float(genai_prices.calc_price(spent, model_ref=model).total_price)
    except LookupError:
        return None


def per_million(model: str) -> tuple[float | None, float | None]:
    """Return US dollars for a million tokens in and out, for a short request; slow at first."""
    return _million(model, "input_tokens"), _million(model, "output_tokens")


def _million(model: str, kind: str) -> float | None:
    import genai_prices

    # A thousand: some models cost more in long requests.
    try:
        spent = genai_prices.Usage(**{kind: 1_000})
        return round(float(genai_prices.calc_price(spent, model_ref=model).total_price) * 1000, 4)
    except LookupError:
        return None
