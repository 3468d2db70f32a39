"""Load a model by its name, and choose one if none is named.

Names are ``provider:model``. A prefix counts only if it is a registered provider, so that
``hermes3:8b`` stays an Ollama name; bare vendor names find their vendor.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evercontext.domain.backoff import Backoff
from evercontext.domain.model import Model, ModelInfo
from evercontext.errors import ModelMistyped, ModelProblem, ModelUnknown
from evercontext.models import plugin_models, unknown_models
from evercontext.models.context_windows import window
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.lazy_model import open_or_defer
from evercontext.models.model_fallback import Fallback
from evercontext.models.prices import per_million
from evercontext.models.provider_errors import Provider
from evercontext.models.retry import Retrying
from evercontext.process.environment import filtered
from evercontext.settings import KEY_FILE, STORED, Settings, process_environment
from evercontext.settings.installation import this_installation
from evercontext.settings.provider_keys import KEYRING

if TYPE_CHECKING:
    from evercontext.models.vendor_cli import Vendor, VendorCli

OPENAI_MODELS = ("gpt-6.1-terra", "gpt-6-luna", "gpt-4.1-mini", "gpt-4.1-nano")
"""The first is used where none is named: current, capable, of moderate price."""
CLAUDE_MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5")
EMBEDDED = "smollm2"
SET_UP = "Run: evercontext setup (a key of OpenAI or Anthropic, a running Ollama, or a small model)"
PROBE = 0.5
"""Seconds given to a look whether Ollama runs: nobody waits for what is not there."""

SMALL_WINDOW = 16_384
"""Tokens that are assumed of a model that has not answered yet."""

_VENDORS = [
    (re.compile(r"gpt-|chatgpt-|o\d"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
]
Build = Callable[[str, Settings], Awaitable[Model]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that is used when none is named, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Available:
    """One line of ``evercontext model list``."""

    name: str
    ready: bool
    note: str
    window: int | None = None
    """Tokens of its context window, where it is known."""
    input_usd: float | None = None
    """Price of a million tokens, in and out; ``None`` where none is known."""
    output_usd: float | None = None


@dataclass(frozen=True, slots=True)
class VendorProgram:
    """A vendor's program as it is installed here."""

    name: str
    text: str
    fits: bool
    fix: str | None = None


def split(name: str) -> tuple[str, str]:
    """Return (provider, model) of a name as a user writes it."""
    name = name.strip()
    prefix, _, rest = name.partition(":")
    if prefix in PROVIDERS or plugin_models.is_offered(prefix):
        return prefix, rest or _DEFAULTS.get(prefix, "")
    if not name:
        raise ModelUnknown("no model is named", fix="Give it as provider:model")
    vendor = next((vendor for pattern, vendor in _VENDORS if pattern.match(name)), "ollama")
    return vendor, name


def canonical(name: str) -> str:
    """Return the full ``provider:model`` of a name."""
    provider, model = split(name)
    return f"{provider}:{model}" if model else provider


async def load(name: str, settings: Settings) -> Model:
    """Open the model of that name; text-only ones speak the JSON protocol."""
    await plugin_models.find_installed()
    provider, model = split(name)
    return await _builder(provider)(model, settings)


def _builder(provider: str) -> Build:
    return PROVIDERS.get(provider) or partial(plugin_models.build, provider)


async def ready(settings: Settings, name: str | None = None) -> Model:
    """Open the named or chosen model as everybody uses it: with retries and the fallback chain."""
    await plugin_models.find_installed()
    if name and (problem := await mistyped(name, settings)):
        raise problem
    if problem := await mistyped_fallback(settings):
        raise problem
    first_name = name or await _usable(settings)
    behind = settings.fallback_models
    first = await _retrying(first_name, settings, last=not behind)
    others = [(other, _opener(other, settings, last=other == behind[-1])) for other in behind]
    return Fallback(first, others) if others else first


async def _usable(settings: Settings) -> str:
    if problem := await missing(settings):
        raise problem
    return (await chosen(settings)).name


def _opener(name: str, settings: Settings, *, last: bool) -> Callable[[], Awaitable[Model]]:
    return lambda: _retrying(name, settings, last=last)


async def _retrying(name: str, settings: Settings, *, last: bool) -> Model:
    """Open a model with its retries; where another stands behind it, one of them is enough."""
    provider, model = split(name)
    assumed = ModelInfo(
        canonical(name),
        settings.context_window or settings.ollama_num_ctx or SMALL_WINDOW,
        local=provider == "ollama",
    )
    opened = await open_or_defer(lambda: _builder(provider)(model, settings), assumed)
    retries = settings.model_retries if last else min(1, settings.model_retries)
    return Retrying(opened, Backoff(attempts=1 + retries))


async def chosen(settings: Settings) -> Choice:
    """Return the model to use when none is named; raises if nothing is set up."""
    if choice := await choose(settings):
        return choice
    raise ModelUnknown("no model is set up", fix=SET_UP)


async def choose(settings: Settings) -> Choice | None:
    """Return the model to use when none is named on the command line; ``None`` if there is none.

    The embedded model is never taken unasked: it is too small for anybody's project (V2).
    """
    if settings.model_name:
        origin = settings.origins.get("model_name", "settings")
        return Choice(canonical(settings.model_name), f"set by {origin}")
    if settings.openai_api_key:
        return Choice(f"openai:{OPENAI_MODELS[0]}", key_reason(settings, "openai"))
    if settings.anthropic_api_key:
        return Choice(f"anthropic:{CLAUDE_MODELS[0]}", key_reason(settings, "anthropic"))
    local = await ollama_models(settings) or []
    if local:
        return Choice(f"ollama:{local[0]}", f"Ollama runs at {settings.ollama_endpoint}")
    return None


def key_reason(settings: Settings, provider: str) -> str:
    """Say where the key of a provider comes from."""
    origin = settings.origins.get(STORED[provider], "")
    if origin in (KEY_FILE, KEYRING):
        return f"its key is stored: {origin}"
    return f"{STORED[provider].upper()} is set"


async def missing(settings: Settings) -> ModelProblem | None:
    """Return why the model that would be used cannot be, as far as that is known beforehand."""
    if settings.model_name and (problem := await mistyped(settings.model_name, settings)):
        return problem
    return _lack_of(await choose(settings), settings)


async def mistyped(name: str, settings: Settings) -> ModelMistyped | None:
    """Return why a name is no model here; a server of the user's own has names of its own."""
    typed = name.strip()
    provider, model = split(typed)
    if provider in STORED and not getattr(settings, f"{provider}_base_url"):
        return await unknown_models.vendor_mistyped(provider, model)
    if provider != "ollama" or typed.partition(":")[0] in PROVIDERS:
        return None
    return await unknown_models.mistyped(
        typed, await ollama_models(settings), settings.ollama_endpoint
    )


async def doubt(name: str, settings: Settings) -> str | None:
    """Return why a name may be mistyped, though it may also be new; ``None`` if it is known."""
    provider, model = split(name)
    if provider not in STORED or getattr(settings, f"{provider}_base_url"):
        return None
    return await unknown_models.doubt(provider, model)


async def mistyped_fallback(settings: Settings) -> ModelMistyped | None:
    """Return why a model of the fallback chain is none."""
    for name in settings.fallback_models:
        if problem := await mistyped(name, settings):
            return ModelMistyped(f"fallback_models: {problem.message}", fix=problem.fix)
    return None


async def ollama_lack(name: str, settings: Settings) -> ModelProblem | None:
    """Return why a model of Ollama cannot be used now; ``None`` if it can, or is another's."""
    provider, model = split(name)
    if provider != "ollama":
        return None
    return await unknown_models.ollama_problem(
        model, await ollama_models(settings), settings.ollama_endpoint
    )


def _lack_of(choice: Choice | None, settings: Settings) -> ModelProblem | None:
    if choice is None:
        return ModelUnknown("no model is set up", fix=SET_UP)
    provider, _ = split(choice.name)
    if provider == "openai" and not (settings.openai_api_key or settings.openai_base_url):
        return Provider("openai", "", "OPENAI_API_KEY").no_key()
    if provider == "anthropic" and not (settings.anthropic_api_key or settings.anthropic_base_url):
        return Provider("anthropic", "", "ANTHROPIC_API_KEY").no_key()
    if provider != "embedded" or (line := _embedded_line(settings)).ready:
        return None
    return ModelUnknown(f"{choice.name} is not ready", fix=f"To make it so, {line.note}")


async def available(settings: Settings) -> list[Available]:
    """Return every model that could be used from here, and what is missing for the others."""
    return [
        *await asyncio.to_thread(_keyed, "openai", OPENAI_MODELS, settings),
        *await asyncio.to_thread(_keyed, "anthropic", CLAUDE_MODELS, settings),
        *await _ollama_lines(settings),
        *_cli_lines(),
        _embedded_line(settings),
        *(Available(name, True, note) for name, note in await plugin_models.list_models(PROVIDERS)),
    ]


def _keyed(provider: str, models: tuple[str, ...], settings: Settings) -> list[Available]:
    has_key = bool(getattr(settings, STORED[provider]))
    variable = STORED[provider].upper()
    note = key_reason(settings, provider) if has_key else f"set {variable}, or evercontext setup"
    return [
        Available(f"{provider}:{model}", has_key, note, window(model), *per_million(model))
        for model in models
    ]


async def ollama_models(settings: Settings) -> list[str] | None:
    """Return the chat models of a running Ollama; ``None`` if none answers."""
    from evercontext.models.ollama import OllamaModel

    server = OllamaModel("", endpoint=settings.ollama_endpoint, timeout=PROBE)
    try:
        return await server.installed()
    except ModelProblem:
        return None
    finally:
        await server.aclose()


async def _ollama_lines(settings: Settings) -> list[Available]:
    at = settings.ollama_endpoint
    if not (names := await ollama_models(settings)):
        return [Available("ollama:…", False, f"no Ollama with a chat model at {at}")]
    return [Available(f"ollama:{name}", True, f"installed at {at}") for name in names]


def _cli_lines() -> list[Available]:
    import shutil

    from evercontext.models.vendors.codex import Codex
    from evercontext.models.vendors.gemini import Gemini

    path = process_environment().get("PATH")
    lines = []
    for vendor in (Gemini(), Codex()):
        place = shutil.which(vendor.program, path=path)
        note = f"{vendor.program} is installed" if place else f"run: {vendor.install}"
        lines.append(Available(vendor.name, place is not None, note))
    return lines


async def programs(settings: Settings) -> list[VendorProgram]:
    """Return the vendors' programs on PATH: their version, and whether it fits."""
    import shutil

    from evercontext.models.vendors.codex import Codex
    from evercontext.models.vendors.gemini import Gemini

    path, listed = process_environment().get("PATH"), []
    for vendor in (Codex(), Gemini()):
        place = shutil.which(vendor.program, path=path)
        if place is None:
            continue
        try:
            facts = await vendor_cli(vendor, settings).facts()
            text = f"{facts.version} at {place}, used for text only, without its own tools"
            listed.append(VendorProgram(vendor.program, text, True))
        except ModelProblem as problem:
            listed.append(VendorProgram(vendor.program, problem.message, False, problem.fix))
    return listed


def _embedded_line(settings: Settings) -> Available:
    import importlib.util

    from evercontext.models.embedded import openmp, weights

    name = f"embedded:{EMBEDDED}"
    if importlib.util.find_spec("xllamacpp") is None:
        return Available(name, False, f"run: {this_installation().hint('embedded')}")
    if not (weights.is_pulled(settings.home) and openmp.is_at_hand(settings.home)):
        return Available(name, False, f"run: evercontext model pull {EMBEDDED}")
    return Available(name, True, "a 135M model for hello-world tasks, no network needed")


async def _openai(model: str, settings: Settings) -> Model:
    from evercontext.models.context_windows import is_known
    from evercontext.models.openai import ADDRESS, OpenAIModel, headers_for
    from evercontext.models.server_facts import ServerFacts, ask_server
    from evercontext.models.tool_fallback import ToolFallback

    base, key, facts = settings.openai_base_url, settings.openai_api_key, ServerFacts()
    if base and base.rstrip("/") != ADDRESS and not is_known(model):
        facts = await ask_server(
            Provider("openai", model, address=base), headers_for(key or "none")
        )
    opened = OpenAIModel(
        model,
        api_key=key,
        base_url=base,
        timeout=settings.model_timeout,
        context_window=settings.context_window or facts.window,
        native_tools=facts.tools is not False,
    )
    return (
        ToolFallback(opened) if facts.tools is not False else JsonProtocol(opened, tool_role=False)
    )


async def _anthropic(model: str, settings: Settings) -> Model:
    from evercontext.models.anthropic import AnthropicModel

    return AnthropicModel(
        model,
        api_key=settings.anthropic_api_key,
        base_url=settings.anthropic_base_url,
        timeout=settings.model_timeout,
        context_window=settings.context_window,
    )


async def _ollama(model: str, settings: Settings) -> Model:
    from evercontext.models.ollama import OllamaModel

    opened = OllamaModel(
        model or await _first_ollama(settings),
        endpoint=settings.ollama_endpoint,
        num_ctx=settings.ollama_num_ctx,
        timeout=settings.model_timeout,
        context_window=settings.context_window,
    )
    try:
        shown = await opened.describe()
    except ModelProblem:
        await opened.aclose()
        raise
    return opened if shown.tools else JsonProtocol(opened, tool_role=shown.tool_role)


async def _first_ollama(settings: Settings) -> str:
    if names := await ollama_models(settings):
        return names[0]
    raise ModelUnknown("Ollama has no chat model here", fix="Run: ollama pull qwen3-coder")


async def _gemini(model: str, settings: Settings) -> Model:
    from evercontext.models.vendors.gemini import Gemini

    return JsonProtocol(vendor_cli(Gemini(model), settings))


async def _codex(model: str, settings: Settings) -> Model:
    from evercontext.models.vendors.codex import Codex

    return JsonProtocol(vendor_cli(Codex(model), settings))


def vendor_cli(vendor: Vendor, settings: Settings, **limits: Any) -> VendorCli:
    """Return a vendor's program as a text model; ``limits`` are those of ``VendorCli``."""
    from evercontext.models.vendor_cli import VendorCli, variables

    environment = process_environment()
    # A vendor's own program is given the vendor's own key and no other.
    names = (*variables(vendor, environment), *settings.vendor_variables)
    return VendorCli(
        vendor,
        env=filtered(environment, extra=names),
        state=settings.home / "vendors",
        sandbox=settings.sandbox,
        context_window=settings.context_window,
        **{"timeout": settings.model_timeout, **limits},
    )


async def _embedded(model: str, settings: Settings) -> Model:
    from evercontext.models.embedded.model import EmbeddedModel

    return JsonProtocol(EmbeddedModel(settings.home, model), tool_role=False)


async def _scripted(model: str, settings: Settings) -> Model:
    from evercontext.models.scripted import ScriptedModel

    if not model:
        raise ModelUnknown("no script is named", fix="Give it as scripted:FILE")
    return ScriptedModel.from_file(Path(model))


PROVIDERS: dict[str, Build] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "gemini-cli": _gemini,
    "codex-cli": _codex,
    "embedded": _embedded,
    "scripted": _scripted,
}
_DEFAULTS = {"openai": OPENAI_MODELS[0], "anthropic": CLAUDE_MODELS[0], "embedded": EMBEDDED}
