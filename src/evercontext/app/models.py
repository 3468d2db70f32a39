"""Models, for those rooms that may not choose one themselves."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.domain.message import user
from evercontext.domain.model import Model, Reply, Request, complete
from evercontext.errors import ModelMistyped, ModelProblem
from evercontext.models import load
from evercontext.models.load import Available, Choice, VendorProgram
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.models.vendor_cli import VendorCli

_READ_ONLY = ("exec", "--sandbox", "read-only", "--skip-git-repo-check", "-")
_NO_KEY = "not set"
Progress = Callable[[int, int], None]
"""Bytes so far, and bytes expected."""


async def open_model(settings: Settings, name: str | None = None) -> Model:
    """Open the named model, or the chosen one, with its retry and its fallbacks."""
    return await load.ready(settings, name)


async def describe_model(settings: Settings, name: str | None = None) -> Model:
    """Open a model only to see what it is: nothing is sent, so no key is needed."""
    asked = name or (await load.chosen(settings)).name
    keyless = replace(
        settings,
        openai_api_key=settings.openai_api_key or _NO_KEY,
        anthropic_api_key=settings.anthropic_api_key or _NO_KEY,
    )
    return await load.load(asked, keyless)


async def chosen_model(settings: Settings) -> Choice:
    """Say which model is used, and why; raises if none is set up."""
    return await load.chosen(settings)


async def choose_model(settings: Settings) -> Choice | None:
    """Say which model would be used, and why; ``None`` if none is set up."""
    return await load.choose(settings)


async def available_models(settings: Settings) -> list[Available]:
    """Every model that could be used from here, and what the others lack."""
    return await load.available(settings)


async def mistyped_model(name: str, settings: Settings) -> ModelMistyped | None:
    """Return why a name is no model here, with the names nearest to it; ``None`` if it may be."""
    return await load.mistyped(name, settings)


async def ollama_lack(name: str, settings: Settings) -> ModelProblem | None:
    """Return why a model of Ollama cannot be used now; ``None`` if it can, or is another's."""
    return await load.ollama_lack(name, settings)


def canonical_name(name: str) -> str:
    """Return the full ``provider:model`` of a name as a user writes it."""
    return load.canonical(name)


def codex_judge_model(settings: Settings) -> VendorCli:
    """Return the codex program with the judge's arguments, time and buffer."""
    from evercontext.models.vendors.codex import Codex

    preset = settings.codex_args.strip() == "read-only"
    words = _READ_ONLY if preset else tuple(shlex.split(settings.codex_args))
    return load.vendor_cli(
        Codex(words=words or ("exec",)),
        settings,
        timeout=settings.codex_timeout / 1000,
        max_output=settings.codex_max_buffer,
    )


async def vendor_programs(settings: Settings) -> list[VendorProgram]:
    """Return the vendors' programs that are installed here, with their versions."""
    return await load.programs(settings)


async def pull_model(
    name: str, settings: Settings, progress: Progress, *, source: Path | None = None
) -> tuple[Path, bool]:
    """Bring an embedded model's file; return where it lies and whether it came just now."""
    from evercontext.models.embedded import openmp, weights
    from evercontext.models.embedded.registry import Registry

    registry = Registry(environment=process_environment(), report=progress)
    pulled = await weights.pull(settings.home, registry, weights.find(name), source=source)
    if source is None and name == weights.SMOLLM2.name:
        await openmp.bring(settings.home, registry)
    return pulled.path, pulled.fresh


async def test_model(name: str, settings: Settings) -> Reply:
    """Ask a model for one word; whatever is wrong with it shows here."""
    if problem := await load.mistyped(name, settings):
        raise problem
    model = await load.load(name, settings)
    try:
        question = "Answer with the single word: ready"
        return await complete(model, Request([user(question)], max_output_tokens=16))
    finally:
        await model.aclose()
