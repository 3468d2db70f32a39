"""Open models of other packages: the entry point ``evercontext.models`` names a provider.

Its value is a function that takes a model's name and the settings and returns a ``Model``, or an
awaitable of one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Container

from evercontext import plugins
from evercontext.domain.model import Model
from evercontext.errors import ConfigError
from evercontext.settings import Settings


async def find_installed() -> None:
    """Look for installed plugins in a thread: with many packages that takes a while."""
    await asyncio.to_thread(plugins.installed, "models")


def is_offered(provider: str) -> bool:
    """True if an installed package offers models under this name."""
    return provider in plugins.installed("models")


async def build(provider: str, model: str, settings: Settings) -> Model:
    """Open a model of the package that offers this provider."""
    point = plugins.installed("models")[provider]
    opener = await asyncio.to_thread(plugins.load, point)
    opened = opener(model, settings)
    opened = await opened if inspect.isawaitable(opened) else opened
    if not (hasattr(opened, "info") and hasattr(opened, "stream")):
        raise ConfigError(
            f"the plugin {provider} ({point.value}) returned {type(opened).__name__}, not a model",
            fix="Update or uninstall it",
        )
    built: Model = opened
    return built


async def list_models(ours: Container[str]) -> list[tuple[str, str]]:
    """Return name and description of each provider that is not built in, for the list of models."""
    await find_installed()
    return [
        (f"{name}:…", f"offered by the installed package {point.module.partition('.')[0]}")
        for name, point in plugins.installed("models").items()
        if name not in ours
    ]
