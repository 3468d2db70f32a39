"""Chain models: when one is unavailable, use the next and say so."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from evercontext.domain.model import Delta, Model, ModelInfo, NoticeDelta, Request
from evercontext.errors import ModelProblem, ModelUnavailable
from evercontext.models.model_stream import open_stream

Open = Callable[[], Awaitable[Model]]


class Fallback:
    """Tries the models in order on rate limits and outages; the others are opened when needed."""

    def __init__(
        self,
        first: Model,
        others: Sequence[tuple[str, Open]],
        *,
        rest: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``rest`` is how long the chain stays with a substitute before it tries from the front."""
        self._models: list[Model] = [first]
        self._others = list(others)
        self._rest = rest
        self._clock = clock
        self._at = 0
        self._since = 0.0

    @property
    def info(self) -> ModelInfo:
        """What is known of the model that answers now."""
        return self._models[self._at].info

    async def aclose(self) -> None:
        """Close every model that was opened."""
        for model in self._models:
            await model.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield the first answer that comes whole; one that broke half-way is voided."""
        if self._at and self._clock() - self._since > self._rest:
            self._at = 0
        while True:
            streamed = False
            try:
                async with open_stream(self._models[self._at], request) as deltas:
                    async for delta in deltas:
                        streamed = streamed or not isinstance(delta, NoticeDelta)
                        yield delta
                return
            except ModelUnavailable as error:
                # Judged before switching: the message names the one that failed.
                failed = error.message
                if not await self._next():
                    raise
            yield NoticeDelta(f"{failed}; {self.info.name} steps in", restart=streamed, retry=True)

    async def _next(self) -> bool:
        """Move to the next model that can be opened."""
        if self._at + 1 < len(self._models):
            self._at += 1
            self._since = self._clock()
            return True
        while self._others:
            _, open_model = self._others.pop(0)
            try:
                self._models.append(await open_model())
            except ModelProblem:
                continue
            self._at = len(self._models) - 1
            self._since = self._clock()
            return True
        return False
