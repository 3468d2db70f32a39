"""Ask a server that speaks OpenAI's protocol what its model can do.

llama.cpp, vLLM, LM Studio and gateways each tell it in their own words, beside the list of models.
A server that tells nothing, or not at once, is used as if it could do everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evercontext.errors import ModelProblem
from evercontext.models.provider_errors import Provider
from evercontext.models.vendor_http import Refusal, VendorHttp

SECONDS = 2.0
"""How long the question may take: the answer is worth less than a user's patience."""
_WINDOWS = (
    "n_ctx",
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "max_context_length",
    "context_window",
)
"""What servers call the window, the one in use before the one that the model could have."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server tells of a model; None where it tells nothing."""

    window: int | None = None
    tools: bool | None = None


async def ask_server(provider: Provider, headers: Mapping[str, str]) -> ServerFacts:
    """Return what the server tells of the provider's model."""
    http = VendorHttp(provider, headers, SECONDS)
    try:
        # The client's own limit is one of silence: a server that drips would hold us for ever.
        async with asyncio.timeout(SECONDS):
            listed = _entry(await http.get("/models"), provider.model)
            if listed.get("owned_by") != "llamacpp":
                return facts_of(listed)
            root = provider.address.rstrip("/").removesuffix("/v1")
            return facts_of(listed, await http.get(f"{root}/props"))
    except (ModelProblem, Refusal, TimeoutError):
        return ServerFacts()
    finally:
        await http.aclose()


def _entry(answer: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """Return the entry of a model; a server with a single one answers to any name."""
    data = answer.get("data")
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    named = [entry for entry in entries if entry.get("id") == model]
    return (named or (entries if len(entries) == 1 else []) or [{}])[0]


def facts_of(entry: Mapping[str, Any], props: Mapping[str, Any] | None = None) -> ServerFacts:
    """Read an entry of the list of models and, of llama.cpp, its properties."""
    return ServerFacts(_window(entry, props or {}), _tools(entry, props or {}))


def _window(entry: Mapping[str, Any], props: Mapping[str, Any]) -> int | None:
    places = (_table(props, "default_generation_settings"), _table(entry, "meta"), entry)
    numbers = (place.get(name) for place in places for name in _WINDOWS)
    return next((n for n in numbers if isinstance(n, int) and n > 0), None)


def _tools(entry: Mapping[str, Any], props: Mapping[str, Any]) -> bool | None:
    template = _table(props, "chat_template_caps").get("supports_tools")
    if isinstance(template, bool):
        return template
    # OpenRouter lists the parameters of a model, LM Studio its capabilities.
    for words in _lists(entry, "supported_parameters"):
        return "tools" in words
    for words in _lists(entry, "capabilities"):
        return True if {"tools", "tool_use"} & set(words) else None
    return None


def _lists(entry: Mapping[str, Any], name: str) -> Iterator[list[str]]:
    value = entry.get(name)
    if isinstance(value, list):
        yield [str(word) for word in value]


def _table(place: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = place.get(name)
    return value if isinstance(value, Mapping) else {}
