"""Set up a model: report what is available, and store what a person chooses."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evercontext.errors import (
    ConfigError,
    ModelProblem,
    ModelUnavailable,
    ModelUnknown,
    ProcessProblem,
)
from evercontext.models import model_loader
from evercontext.models.model_loader import Available, Choice
from evercontext.settings import (
    STORED,
    Settings,
    clean_key,
    forget,
    keep,
    masked,
    process_environment,
    remove_key,
    store_key,
)
from evercontext.settings.installation import install_hint, this_installation

SMALL_MODEL = f"embedded:{model_loader.EMBEDDED}"
Progress = Callable[[int, int], None]
"""Receives the bytes so far and the bytes expected."""
RUNTIME_SIZE = 102_000_000
"""Bytes of the small model's runtime, about."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a provider as it may be shown."""

    provider: str
    masked: str | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class Setup:
    """What is set up, and what could be."""

    choice: Choice | None
    """The model that is used when none is named; ``None`` if none is set up."""
    problem: ModelProblem | None
    """Why that model cannot be used, as far as that is known without asking it."""
    keys: tuple[Key, ...]
    ollama: tuple[str, ...] | None
    """The models of a running Ollama; ``None`` if none runs."""
    small: Available


async def read_setup(settings: Settings) -> Setup:
    """Return which model, keys and local models are set up."""
    installed = await model_loader.ollama_models(settings)
    listed = {model.name: model for model in await model_loader.available(settings)}
    return Setup(
        choice=await model_loader.choose(settings),
        problem=await model_loader.missing(settings),
        keys=tuple(_key(provider, settings) for provider in STORED),
        ollama=None if installed is None else tuple(installed),
        small=listed[SMALL_MODEL],
    )


def _key(provider: str, settings: Settings) -> Key:
    value = getattr(settings, STORED[provider])
    if not value:
        return Key(provider, None, None)
    return Key(provider, masked(value), settings.origins[STORED[provider]])


async def check_key(provider: str, key: str, settings: Settings) -> None:
    """Ask the provider whether it takes the key."""
    from evercontext.models.key_check import check_key as ask

    address = settings.openai_base_url if provider == "openai" else settings.anthropic_base_url
    await ask(provider, clean_key(key), address)


def use_key(
    settings: Settings,
    provider: str,
    key: str,
    *,
    place: Literal["keyring", "file"] | None = None,
    model: str | None = None,
) -> str:
    """Store a key, use its provider from now on, and return where the key is."""
    chosen = provider_model(provider, model)
    origin = store_key(settings.home, provider, key, place)
    keep(settings.home, "model_name", chosen)
    return origin


def provider_model(provider: str, model: str | None) -> str:
    """Return the name to keep; without a model it follows what this version takes by default."""
    if model is None:
        return provider
    full = model_loader.canonical(model if ":" in model else f"{provider}:{model}")
    if full.partition(":")[0] != provider:
        raise ConfigError(f"{full} is no model of {provider}", fix="Leave --model out, or name one")
    return full


async def use_ollama(settings: Settings, model: str) -> str:
    """Use a model of the running Ollama from now on; return its full name."""
    installed = await model_loader.ollama_models(settings)
    if installed is None:
        raise ModelUnknown(
            f"no Ollama runs at {settings.ollama_endpoint}",
            fix="Start it with `ollama serve`, or set EC_OLLAMA_ENDPOINT",
        )
    name = model.removeprefix("ollama:")
    matches = [known for known in installed if known in (name, f"{name}:latest")]
    if not matches:
        there = ", ".join(installed) or "none"
        raise ModelUnknown(
            f"Ollama has no model {name!r} (there: {there})", fix=f"Run: ollama pull {name}"
        )
    keep(settings.home, "model_name", f"ollama:{matches[0]}")
    return f"ollama:{matches[0]}"


def use_small_model(settings: Settings) -> None:
    """Use the small model from now on."""
    keep(settings.home, "model_name", SMALL_MODEL)


def drop_key(settings: Settings, provider: str) -> bool:
    """Remove a stored key, and the choice of a model that needs it; tell whether there was one."""
    was_there = remove_key(settings.home, provider)
    name = settings.model_name or ""
    is_stored = settings.origins.get("model_name", "") == "config.json"
    in_environment = settings.origins[STORED[provider]].startswith("environment")
    if was_there and is_stored and not in_environment and model_loader.split(name)[0] == provider:
        forget(settings.home, "model_name")
    return was_there


def has_runtime() -> bool:
    """True if the runtime of the small model is installed."""
    importlib.invalidate_caches()
    return importlib.util.find_spec("xllamacpp") is not None


async def install_runtime(settings: Settings, progress: Progress) -> None:
    """Install the runtime of the small model into the running copy, the way it was installed."""
    from evercontext.models.embedded.registry import Registry

    here = this_installation()
    command = here.with_extra("embedded")
    if here.way == "uvx":
        raise ModelUnknown(
            "the small model needs a runtime, and uvx keeps nothing",
            fix=f"Start it like this instead: {here.hint('embedded')}",
        )
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    registry = Registry(environment=process_environment(), report=progress)
    with tempfile.TemporaryDirectory(prefix=".install-", dir=settings.home) as folder:
        try:
            await registry.install(command, Path(folder), RUNTIME_SIZE)
        except (ModelUnavailable, ProcessProblem) as error:
            raise ModelUnavailable(
                f"the runtime could not be installed: {error.message}",
                fix=f"Run: {here.hint('embedded')}",
            ) from error
    if not has_runtime():
        raise ModelUnknown("the runtime is installed, but not here", fix=install_hint("embedded"))
