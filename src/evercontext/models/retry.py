"""The one retry policy: SDK retries are off, whoever calls decides how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from evercontext.domain.model import Delta, Model, ModelInfo, NoticeDelta, Request
from evercontext.errors import ModelUnavailable, RateLimited
from evercontext.models.listening import listening

Sleep = Callable[[float], Awaitable[None]]


class Retrying:
    """Asks again after an outage: once for the agent (E40), more often where a caller says so."""

    def __init__(
        self,
        inner: Model,
        *,
        attempts: int = 2,
        first_wait: float = 1.0,
        longest_wait: float = 30.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Wait what the provider asks for, else ``first_wait`` doubled each time."""
        self._inner = inner
        self._attempts = attempts
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._sleep = sleep

    @property
    def info(self) -> ModelInfo:
        """What is known of the wrapped model."""
        return self._inner.info

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._inner.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield the answer; a try that failed half-way is voided by a notice."""
        for attempt in range(1, self._attempts + 1):
            streamed = False
            try:
                async with listening(self._inner, request) as deltas:
                    async for delta in deltas:
                        streamed = streamed or not isinstance(delta, NoticeDelta)
                        yield delta
                return
            except ModelUnavailable as error:
                wait = self._wait(error, attempt)
                if attempt == self._attempts or wait > self._longest_wait:
                    raise
                notice = f"{error.message}; trying again in {wait:.0f} s"
            yield NoticeDelta(notice, restart=streamed)
            await self._sleep(wait)

    def _wait(self, error: ModelUnavailable, attempt: int) -> float:
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return error.retry_after
        return self._first_wait * 2.0 ** (attempt - 1)
