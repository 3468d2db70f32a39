"""Open models for the packages that may not choose one themselves."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.domain.message import user
from evercontext.domain.model import Model, Reply, Request, complete
from evercontext.models import model_loader
from evercontext.models import setup as setup
from evercontext.models.context_windows import window as window_of
from evercontext.models.model_loader import Available as Available
from evercontext.models.model_loader import available as available_models
from evercontext.models.model_loader import canonical as canonical_name
from evercontext.models.model_loader import choose as choose_model
from evercontext.models.model_loader import chosen as chosen_model
from evercontext.models.model_loader import doubt as doubt_about_model
from evercontext.models.model_loader import missing as missing_model
from evercontext.models.model_loader import mistyped as mistyped_model
from evercontext.models.model_loader import mistyped_fallback as mistyped_fallback
from evercontext.models.model_loader import ollama_lack as ollama_lack
from evercontext.models.model_loader import programs as vendor_programs
from evercontext.models.model_loader import ready as open_model
from evercontext.models.setup import Progress, Setup
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.models.vendor_cli import VendorCli

__all__ = [
    "Available",
    "Progress",
    "Setup",
    "available_models",
    "canonical_name",
    "choose_model",
    "chosen_model",
    "codex_judge_model",
    "describe_model",
    "doubt_about_model",
    "missing_model",
    "mistyped_fallback",
    "mistyped_model",
    "ollama_lack",
    "open_model",
    "open_picking_model",
    "pull_model",
    "setup",
    "test_model",
    "vendor_programs",
    "window_of",
]

_READ_ONLY = ("exec", "--sandbox", "read-only", "--skip-git-repo-check", "-")
_NO_KEY = "not set"


async def describe_model(settings: Settings, name: str | None = None) -> Model:
    """Open a model only to read its description; no request is sent, so no key is needed."""
    full_name = name or (await model_loader.chosen(settings)).name
    keyless = replace(
        settings,
        openai_api_key=settings.openai_api_key or _NO_KEY,
        anthropic_api_key=settings.anthropic_api_key or _NO_KEY,
    )
    return await model_loader.load(full_name, keyless)


async def open_picking_model(settings: Settings) -> Model | None:
    """Open the model that picks tools for clients; ``None`` if no fitting one is set up."""
    choice = await model_loader.choose(settings)
    name = settings.catalog_model or (choice.name if choice else "")
    # The embedded model chooses badly among five tools, let alone forty.
    if not name or (name.startswith("embedded:") and not settings.catalog_model):
        return None
    return await model_loader.ready(settings, name)


def codex_judge_model(settings: Settings) -> VendorCli:
    """Return the codex program with the judge's arguments, time and buffer."""
    from evercontext.models.vendors.codex import Codex

    preset = settings.codex_args.strip() == "read-only"
    words = _READ_ONLY if preset else tuple(shlex.split(settings.codex_args))
    return model_loader.vendor_cli(
        Codex(words=words or ("exec",)),
        settings,
        timeout=settings.codex_timeout / 1000,
        max_output=settings.codex_max_buffer,
    )


async def pull_model(
    name: str, settings: Settings, progress: Progress, *, source: Path | None = None
) -> tuple[Path, bool]:
    """Download an embedded model's file; return its path and whether it was downloaded now."""
    from evercontext.models.embedded import openmp, weights
    from evercontext.models.embedded.registry import Registry

    registry = Registry(environment=process_environment(), report=progress)
    pulled = await weights.pull(settings.home, registry, weights.find(name), source=source)
    if source is None and name == weights.SMOLLM2.name:
        await openmp.bring(settings.home, registry)
    return pulled.path, pulled.fresh


async def test_model(name: str, settings: Settings) -> Reply:
    """Ask a model for one word, so that every problem with it shows."""
    if problem := await model_loader.mistyped(name, settings):
        raise problem
    model = await model_loader.load(name, settings)
    try:
        question = "Answer with the single word: ready"
        return await complete(model, Request([user(question)], max_output_tokens=16))
    finally:
        await model.aclose()
