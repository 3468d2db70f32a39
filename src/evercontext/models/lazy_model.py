"""Open a model with its first request, if its server was away when the model was opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from evercontext.domain.model import Delta, Model, ModelInfo, Request
from evercontext.errors import ModelUnavailable
from evercontext.models.model_stream import open_stream

OpenModel = Callable[[], Awaitable[Model]]


class LazyModel:
    """Stand for a model until its server answers, so that retries and fallbacks apply to it too."""

    def __init__(self, open_model: OpenModel, info: ModelInfo) -> None:
        """``info`` is what is assumed of the model until it is open."""
        self._open = open_model
        self._info = info
        self._model: Model | None = None

    @property
    def info(self) -> ModelInfo:
        """What the model says of itself, or what is assumed of it."""
        return self._model.info if self._model else self._info

    async def aclose(self) -> None:
        """Close the model, if it was ever opened."""
        if self._model:
            await self._model.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Open the model if need be, and pass on what it says."""
        if self._model is None:
            self._model = await self._open()
        async with open_stream(self._model, request) as deltas:
            async for delta in deltas:
                yield delta


async def open_or_defer(open_model: OpenModel, info: ModelInfo) -> Model:
    """Open a model now; one that is away for the moment is opened when it is first asked."""
    try:
        return await open_model()
    except ModelUnavailable:
        return LazyModel(open_model, info)
