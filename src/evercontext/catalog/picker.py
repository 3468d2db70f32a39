"""Open the model that picks tools when it is first needed, and keep it open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from evercontext.catalog.model_search import ModelPick
from evercontext.domain.model import Model
from evercontext.errors import ModelProblem

RETRY_SECONDS = 60.0
"""How long a missing model is not looked for again."""


@dataclass
class Picker:
    """Open the picking model once; look again later where there is none."""

    open_model: Callable[[], Awaitable[Model | None]]
    stack: AsyncExitStack
    retry_seconds: float = RETRY_SECONDS

    def __post_init__(self) -> None:
        """Begin without a model."""
        self._pick: ModelPick | None = None
        self._missing_until = 0.0
        self._opening = asyncio.Lock()

    async def get(self) -> ModelPick | None:
        """Return the provider that asks the model, or ``None`` if there is none."""
        async with self._opening:
            if self._pick is None and time.monotonic() >= self._missing_until:
                self._pick = await self._open()
                if self._pick is None:
                    self._missing_until = time.monotonic() + self.retry_seconds
        return self._pick

    async def _open(self) -> ModelPick | None:
        try:
            model = await self.open_model()
        except ModelProblem:
            return None
        if model is None:
            return None
        self.stack.push_async_callback(model.aclose)
        return ModelPick(model)
