from __future__ import annotations

import pytest

from evercontext.models.unknown_models import mistyped, ollama_problem

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
