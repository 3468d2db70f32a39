"""Retry a model after an outage; retries of vendors' clients are off."""

from __future__ import annotations

from collections.abc import AsyncIterator

from evercontext.domain.backoff import Backoff
from evercontext.domain.model import Delta, Model, ModelInfo, NoticeDelta, Request
from evercontext.errors import ModelUnavailable
from evercontext.models.model_stream import open_stream


class Retrying:
    """A model that is asked again after an outage (E40)."""

    def __init__(self, inner: Model, backoff: Backoff | None = None) -> None:
        self._inner = inner
        self._backoff = backoff or Backoff()

    @property
    def info(self) -> ModelInfo:
        """What is known of the wrapped model."""
        return self._inner.info

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._inner.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield the answer; a try that failed half-way is voided by a notice."""
        tries = self._backoff.begin(request.seconds_left)
        while True:
            streamed = False
            try:
                async with open_stream(self._inner, request) as deltas:
                    async for delta in deltas:
                        streamed = streamed or not isinstance(delta, NoticeDelta)
                        yield delta
                return
            except ModelUnavailable as error:
                seconds = tries.wait(error)
                if seconds is None:
                    raise
                which = f"try {tries.number} of {self._backoff.attempts}"
                notice = f"{error.message}; trying again in {seconds:.1f} s ({which})"
            yield NoticeDelta(notice, restart=streamed, retry=True)
            await self._backoff.sleep(seconds)
