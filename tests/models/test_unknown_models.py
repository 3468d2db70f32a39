from __future__ import annotations

import pytest

from evercontext.models.unknown_models import doubt, mistyped, ollama_problem, vendor_mistyped

AT = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("typed", "installed"),
    [("hermes3:8b", None), ("own:1b", ["own:1b"]), ("own", ["own:latest"])],
)
async def test_what_may_well_be_there_is_no_typo(typed: str, installed: list[str] | None) -> None:
    assert await mistyped(typed, installed, AT) is None


async def test_a_typo_is_told_with_what_is_near_and_what_is_installed() -> None:
    """V9."""
    problem = await mistyped("qwen3-codr", ["qwen3-coder", "own:1b"], AT)
    assert problem is not None
    assert "near it: ollama:qwen3-coder" in problem.message
    assert "Ollama has qwen3-coder, own:1b" in problem.message
    assert "ollama:qwen3-codr" in str(problem)


async def test_a_model_of_ollama_is_there_or_it_is_said_how_to_get_it() -> None:
    """V8."""
    assert await ollama_problem("own", ["own:latest"], AT) is None
    assert await ollama_problem("", ["own:latest"], AT) is None
    assert "no Ollama runs" in str(await ollama_problem("own", None, AT))
    assert "ollama pull other" in str(await ollama_problem("other", ["own:latest"], AT))


@pytest.mark.parametrize(
    ("provider", "model", "near"),
    [
        ("openai", "gtp-5", "openai:gpt-5"),
        ("openai", "pgt-4.1-mini", "openai:gpt-4.1-mini"),
        ("anthropic", "cluade-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("anthropic", "sonnet-4-5", "anthropic:claude-sonnet-4-5"),
    ],
)
async def test_a_typo_behind_a_provider_is_told(provider: str, model: str, near: str) -> None:
    """V9."""
    problem = await vendor_mistyped(provider, model)
    assert problem is not None
    assert near in problem.message


@pytest.mark.parametrize(
    "model", ["gpt-5", "gpt-99-new", "o9", "ft:gpt-4o:me::1", "unheard-of", "their/model", ""]
)
async def test_what_may_be_new_or_the_users_own_is_believed(model: str) -> None:
    assert await vendor_mistyped("openai", model) is None


async def test_a_new_name_is_doubted_and_a_known_one_is_not() -> None:
    assert await doubt("openai", "gpt-5") is None
    assert "near it: openai:gpt-5" in str(await doubt("openai", "gpt-5x"))
    assert await doubt("openai", "zzz") == "it is in no list of models here"
    assert await doubt("ollama", "zzz") is None
