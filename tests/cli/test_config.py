from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.settings import rows
from tests.cli.command import evercontext, home


def test_show_names_every_setting_and_its_origin(tmp_path: Path) -> None:
    (tmp_path / "evercontext.toml").write_text("max_turns = 7\n")
    evercontext("config", "set", "timeout", "60")
    ended = evercontext(
        "config", "show", "--origin", "--json", cwd=tmp_path, env={"EC_MAX_BYTES": "1000"}
    )
    shown = {row["name"]: row for row in json.loads(ended.out)}
    assert list(shown) == [row.name for row in rows()]
    assert (shown["max_turns"]["value"], shown["max_turns"]["origin"]) == ("7", "evercontext.toml")
    assert (shown["timeout"]["value"], shown["timeout"]["origin"]) == ("60.0", "config.json")
    assert shown["max_bytes"]["origin"] == "environment EC_MAX_BYTES"
    assert shown["port"]["origin"] == "default"


def test_text_has_one_line_for_each(tmp_path: Path) -> None:
    ended = evercontext("config", "show", "--origin", cwd=tmp_path)
    lines = ended.out.splitlines()
    assert len(lines) == len(rows())
    given = ("EC_HOME", "EC_ROUTER_PORT", "MCP_PORT")
    ends = ("default", *(f"environment {name}" for name in given))
    assert all(line.endswith(ends) for line in lines)


@pytest.mark.case(135)
def test_a_key_is_never_shown() -> None:
    key = "sk-canary-0123456789abcdef"
    for style in ([], ["--origin"], ["--json"]):
        ended = evercontext("config", "show", *style, env={"OPENAI_API_KEY": key})
        assert key not in ended.out + ended.err
        assert "(set)" in ended.out


@pytest.mark.contract("N14")
def test_set_keeps_a_value_for_the_next_time() -> None:
    ended = evercontext("config", "set", "model-name", "ollama:hermes3:8b")
    assert ended.code == 0
    kept = json.loads((home() / "config.json").read_text())
    assert kept == {"model_name": "ollama:hermes3:8b"}
    assert "ollama:hermes3:8b" in evercontext("config", "show").out


@pytest.mark.contract("N14")
@pytest.mark.parametrize("name", ["openai_api_key", "token", "home"])
def test_a_key_is_never_kept(name: str) -> None:
    ended = evercontext("config", "set", name, "sk-canary-0123456789abcdef")
    assert ended.code == 1
    assert "environment" in ended.err
    assert not (home() / "config.json").exists()


def test_set_refuses_what_makes_no_sense() -> None:
    unknown = evercontext("config", "set", "max_turn", "3")
    assert unknown.code == 64
    assert "Did you mean max_turns" in unknown.err
    assert evercontext("config", "set", "max_turns", "many").code == 1


def test_set_says_when_something_else_decides(tmp_path: Path) -> None:
    ended = evercontext("config", "set", "max_turns", "3", env={"EC_MAX_TURNS": "9"})
    assert "EC_MAX_TURNS still decides" in ended.err


@pytest.mark.case(66, 67)
def test_trust_holds_for_exactly_one_content(tmp_path: Path) -> None:
    file = tmp_path / "evercontext.toml"
    file.write_text('test_cmd = "make test"\n')

    def decided() -> str:
        shown = json.loads(evercontext("config", "show", "--json", cwd=tmp_path).out)
        return next(str(row["value"]) for row in shown if row["name"] == "test_cmd")

    assert decided() == "(unset)"
    assert "config trust" in evercontext("config", "show", cwd=tmp_path).err
    nobody = evercontext("config", "trust", cwd=tmp_path)
    assert nobody.code == 5
    assert "make test" in nobody.out
    assert decided() == "(unset)"
    assert evercontext("config", "trust", "--yes", cwd=tmp_path).code == 0
    assert decided() == "make test"
    file.write_text('test_cmd = "make Test"\n')
    assert decided() == "(unset)"


def test_path_says_what_is_there(tmp_path: Path) -> None:
    ended = evercontext("config", "path", "--json", cwd=tmp_path)
    places = json.loads(ended.out)
    assert places["home"] == str(home())
    assert places["project_settings"] == str(tmp_path / "evercontext.toml")
    assert "(not there yet)" in evercontext("config", "path").out
