"""Explain a model name that is unknown: similar names, and what is installed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from difflib import get_close_matches

from evercontext.errors import ModelMistyped, ModelProblem, ModelUnavailable, ModelUnknown

_OLLAMA_FAMILIES = re.compile(
    r"(codellama|codestral|command-r|deepseek|devstral|gemma|glm|granite|hermes|kimi|llama|minimax"
    r"|mistral|mixtral|nemotron|olmo|phi|qwen|qwq|smollm|starcoder|yi)(?![a-z]{4})"
)
"""How the names of well-known Ollama models begin: these need no running Ollama to be believed."""
_VENDORS = ("openai", "anthropic")
_TUNED = re.compile(r"ft:|.*/")
"""How a name begins that belongs to an account and stands in no list."""
_CHAT_MODELS = re.compile(r"(gpt-|chatgpt-|o\d|claude-)[^:]*$")


async def mistyped(
    typed: str, installed: Sequence[str] | None, endpoint: str
) -> ModelMistyped | None:
    """Return the error for a name that is no model; ``installed`` is ``None`` if no Ollama runs."""
    if installed is None and _OLLAMA_FAMILIES.match(typed):
        return None  # most likely right: that Ollama does not run is said where it is opened
    if _is_installed(typed, installed or ()):
        return None
    there = f"no Ollama runs at {endpoint}"
    if installed is not None:
        there = f"Ollama has {', '.join(installed) or 'no chat model'}"
    near = await asyncio.to_thread(_near, typed, installed or ())
    return ModelMistyped(
        f"no model is called {typed!r}{near} ({there})",
        fix=f"See `evercontext model list`; one that Ollama shall have is ollama:{typed}",
    )


async def vendor_mistyped(provider: str, model: str) -> ModelMistyped | None:
    """Return the error for a name that no model of the vendor has, as far as that is certain.

    A name of a known family may be newer than the list of models: it is believed.
    """
    if provider not in _VENDORS or not model or _TUNED.match(model) or _CHAT_MODELS.match(model):
        return None
    if not (near := await asyncio.to_thread(near_names, f"{provider}:{model}", provider)):
        return None
    return ModelMistyped(
        f"no model of {provider} is called {model!r}; near it: {', '.join(near)}",
        fix="See `evercontext model list`; a server of your own is named by "
        f"{provider.upper()}_BASE_URL",
    )


async def doubt(provider: str, model: str) -> str | None:
    """Return what to say of a vendor's model that is in no list; ``None`` if it is in one."""
    if provider not in _VENDORS or not model or _TUNED.match(model):
        return None
    return await asyncio.to_thread(_doubt, provider, model)


def _doubt(provider: str, model: str) -> str | None:
    if f"{provider}:{model}" in _vendor_names().values():
        return None
    near = near_names(f"{provider}:{model}", provider)
    return "it is in no list of models here" + (f"; near it: {', '.join(near)}" if near else "")


async def ollama_problem(
    model: str, installed: Sequence[str] | None, endpoint: str
) -> ModelProblem | None:
    """Return why a model of Ollama cannot be used now; no name means its first one."""
    if installed is None:
        return ModelUnavailable(
            f"ollama:{model} cannot be asked: no Ollama runs at {endpoint}",
            fix="Start it with `ollama serve`, or run: evercontext setup",
        )
    if _is_installed(model, installed) or (installed and not model):
        return None
    there = ", ".join(installed) or "no chat model"
    near = await asyncio.to_thread(_near, model, installed)
    return ModelUnknown(
        f"Ollama at {endpoint} has no model {model!r}{near} (it has {there})",
        fix=f"Run: ollama pull {model or 'qwen3-coder'}, or evercontext model use NAME",
    )


def _is_installed(name: str, installed: Sequence[str]) -> bool:
    """True if Ollama has the model; without a tag the name means ``latest``."""
    return name in installed or f"{name}:latest" in installed


def _near(name: str, installed: Sequence[str]) -> str:
    """Say which names are near."""
    full = {"smollm2": "embedded:smollm2"} | _vendor_names()
    full |= {model: f"ollama:{model}" for model in installed}
    full |= {full_name: full_name for full_name in list(full.values())}
    near = dict.fromkeys(full[match] for match in get_close_matches(name, full, 6))
    return f"; near it: {', '.join(list(near)[:3])}" if near else ""


def near_names(name: str, provider: str) -> list[str]:
    """Return the vendor's models with names like this one, the nearest first."""
    full = [known for known in _vendor_names().values() if known.startswith(f"{provider}:")]
    return get_close_matches(name, full, 3, cutoff=0.75)


def _vendor_names() -> dict[str, str]:
    """Return the full names of the vendors' chat models by their own; the whole table is read."""
    from genai_prices.data import providers

    names: dict[str, str] = {}
    for provider in providers:
        if provider.id in _VENDORS:
            own = (model.id for model in provider.models)
            names |= {name: f"{provider.id}:{name}" for name in own if _CHAT_MODELS.match(name)}
    return names
