"""The model that picks tools for others, opened when first asked and kept."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from evercontext.app.models import choose_model, open_model
from evercontext.catalog.model_search import ModelPick
from evercontext.errors import ModelProblem
from evercontext.settings import Settings

AGAIN_SECONDS = 60.0
"""How long it is believed that there is no model."""


@dataclass
class Picker:
    """Finds out once in a while whether a model is there that can choose tools."""

    settings: Settings
    stack: AsyncExitStack
    again_seconds: float = AGAIN_SECONDS

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self._pick: ModelPick | None = None
        self._missing_until = 0.0
        self._opening = asyncio.Lock()

    async def get(self) -> ModelPick | None:
        """The provider that asks the model, or ``None`` if there is none."""
        async with self._opening:
            if self._pick is None and time.monotonic() >= self._missing_until:
                self._pick = await self._open()
                if self._pick is None:
                    self._missing_until = time.monotonic() + self.again_seconds
        return self._pick

    async def _open(self) -> ModelPick | None:
        try:
            choice = await choose_model(self.settings)
            name = self.settings.catalog_model or (choice.name if choice else "")
            if not name:
                return None
            # The model inside the package chooses badly among five tools, let alone forty.
            if name.startswith("embedded:") and not self.settings.catalog_model:
                return None
            model = await open_model(self.settings, name)
        except ModelProblem:
            return None
        self.stack.push_async_callback(model.aclose)
        return ModelPick(model)
