from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evercontext import settings
from evercontext.errors import ConfigError, UsageError
from evercontext.settings.untrusted_settings import Project, fewer, higher, lower, off, on

TIGHTER = (fewer, lower, higher, off, on)
VALUES = (
    "true",
    "false",
    "0",
    "1",
    "0.1",
    "0.6",
    "99999999",
    '"1"',
    '"none"',
    '"low"',
    '["x"]',
    '["/srv/x"]',
    '{ PreToolUse = [{ command = "touch x" }] }',
)


def accepted(row: dataclasses.Field[Any]) -> list[tuple[str, Any]]:
    """The values that a row takes, as a project writes them and as they are read."""
    read = []
    for text in VALUES:
        with suppress(ValueError, TypeError):
            read.append((text, row.metadata["parse"](tomllib.loads(f"x = {text}")["x"])))
    assert read, row.name
    return read


def load_default(name: str, tmp_path: Path) -> Any:
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    environment = {"EC_HOME": str(tmp_path / "home")}
    return getattr(settings.load(environment=environment, cwd=tmp_path / "elsewhere"), name)


def load(tmp_path: Path, env: dict[str, str] | None = None, **flags: object) -> settings.Settings:
    (tmp_path / "project").mkdir(exist_ok=True)
    environment = {"EC_HOME": str(tmp_path / "home"), **(env or {})}
    return settings.load(flags, environment=environment, cwd=tmp_path / "project")


def user_file(tmp_path: Path, **values: object) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.json").write_text(json.dumps(values))


def project_file(tmp_path: Path, text: str) -> Path:
    (tmp_path / "project").mkdir(exist_ok=True)
    path = tmp_path / "project" / "evercontext.toml"
    path.write_text(text)
    return path


@pytest.mark.contract("E20", "E23", "E29", "E31", "E32")
def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.root == tmp_path / "project"
    assert found.max_bytes == 512 * 1024
    assert found.ollama_endpoint == "http://localhost:11434"
    assert (found.port, found.router_port, found.evaluator_port) == (8765, 3282, 23100)
    assert (found.target_score, found.max_iterations, found.codex_timeout) == (8.0, 5, 120_000)
    assert found.origins["max_bytes"] == "default"


@pytest.mark.contract("E29", "N14")
def test_flag_beats_environment_beats_project_beats_user(tmp_path: Path) -> None:
    user_file(tmp_path, max_turns=3)
    assert load(tmp_path).max_turns == 3
    project_file(tmp_path, "max_turns = 2")
    assert load(tmp_path).max_turns == 2
    env = {"EC_MAX_TURNS": "3"}
    assert load(tmp_path, env).max_turns == 3
    found = load(tmp_path, env, max_turns=4)
    assert found.max_turns == 4
    assert found.origins["max_turns"] == "flag"
    assert load(tmp_path, env).origins["max_turns"] == "environment EC_MAX_TURNS"


@pytest.mark.contract("E30")
@pytest.mark.parametrize("text", [".py,.md", "py;md", " *.py ; .MD ,"])
def test_extensions_come_by_comma_or_semicolon(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, {"EC_ALLOW_EXT": text}).allow_ext == (".py", ".md")


@pytest.mark.contract("E20")
def test_root_flag_beats_the_variable(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    env = {"EC_APP_ROOT": str(tmp_path)}
    assert load(tmp_path, env).root == tmp_path
    assert load(tmp_path, env, root=str(tmp_path / "other")).root == tmp_path / "other"


@pytest.mark.contract("N14")
def test_keys_never_come_from_a_file(tmp_path: Path) -> None:
    user_file(tmp_path, openai_api_key="sk-from-the-file")
    found = load(tmp_path)
    assert found.openai_api_key is None
    assert any("openai_api_key" in notice for notice in found.notices)
    with pytest.raises(ConfigError):
        settings.keep(tmp_path / "home", "openai_api_key", "sk-1")


@pytest.mark.contract("N12")
def test_a_secret_is_shown_only_as_set(tmp_path: Path) -> None:
    found = load(tmp_path, {"OPENAI_API_KEY": "sk-very-secret-value"})
    assert found.openai_api_key == "sk-very-secret-value"
    assert found.shown("openai_api_key") == "(set)"


@pytest.mark.case(66)
def test_a_repository_cannot_execute_or_loosen_anything_untrusted(tmp_path: Path) -> None:
    project_file(tmp_path, 'test_cmd = "touch /tmp/owned"\nmax_turns = 7\nsandbox = "none"\n')
    found = load(tmp_path)
    assert found.test_cmd is None
    assert found.sandbox == "auto"
    assert found.max_turns == 7
    assert any("config trust" in notice for notice in found.notices)


@pytest.mark.case(66)
def test_a_repository_cannot_lift_the_limit_on_money(tmp_path: Path) -> None:
    user_file(tmp_path, max_budget_usd=0.5, max_tokens=1000)
    path = project_file(tmp_path, "max_budget_usd = 0.4\nmax_tokens = 900\n")
    found = load(tmp_path)
    assert (found.max_budget_usd, found.max_tokens) == (0.4, 900)
    path = project_file(tmp_path, "max_budget_usd = 0\nmax_tokens = 0\n")
    found = load(tmp_path)
    assert (found.max_budget_usd, found.max_tokens) == (0.5, 1000)
    settings.trust(tmp_path / "home", path.read_bytes(), str(path))
    found = load(tmp_path)
    assert (found.max_budget_usd, found.max_tokens) == (0.0, 0)


@pytest.mark.case(66)
@pytest.mark.parametrize("row", settings.rows(), ids=lambda row: row.name)
def test_a_repository_that_nobody_trusts_only_tightens(
    tmp_path: Path, row: dataclasses.Field[Any]
) -> None:
    """X20: every setting says what a project may do with it, and is held to it."""
    kind = row.metadata["project"]
    assert isinstance(kind, Project) or kind in TIGHTER
    own = load_default(row.name, tmp_path)
    for text, brought in accepted(row):
        project_file(tmp_path, f"{row.name} = {text}\n")
        counts = getattr(load(tmp_path), row.name) == brought and brought != own
        if row.metadata["secret"] or kind in (Project.NEVER, Project.TRUSTED):
            assert not counts, text
        elif kind is not Project.FREE:
            assert counts == (brought != own and kind(brought, own)), text


@pytest.mark.case(66)
@pytest.mark.parametrize(
    ("name", "looser", "stricter"),
    [
        ("max_turns", 0, 2),
        ("max_turns", 900, 49),
        ("timeout", 0, 60),
        ("timeout", 9000.0, 5.5),
        ("parallel_tasks", 64, 1),
        ("target_score", 1, 9.5),
        ("repair_rounds", 9, 0),
    ],
)
def test_limits_of_a_stranger(tmp_path: Path, name: str, looser: float, stricter: float) -> None:
    """X20: an untrusted repository lifted max_turns, timeout, parallel_tasks and the judge."""
    own = getattr(load(tmp_path), name)
    path = project_file(tmp_path, f"{name} = {looser}\nuse_mock_evaluator = true\nport = 1\n")
    found = load(tmp_path)
    assert (getattr(found, name), found.use_mock_evaluator, found.port) == (own, None, 8765)
    assert any(name in notice and "config trust" in notice for notice in found.notices)
    settings.trust(tmp_path / "home", path.read_bytes(), str(path))
    assert (getattr(load(tmp_path), name), load(tmp_path).port) == (looser, 8765)
    project_file(tmp_path, f"{name} = {stricter}\n")
    assert getattr(load(tmp_path), name) == stricter


@pytest.mark.parametrize("variable", ["EC_MAX_BYTES", "EC_TIMEOUT"])
def test_a_word_for_a_number_is_said_plainly(tmp_path: Path, variable: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a (whole )?number"):
        load(tmp_path, {variable: "many"})


@pytest.mark.case(67)
def test_trust_is_void_after_one_changed_byte(tmp_path: Path) -> None:
    path = project_file(tmp_path, 'test_cmd = "pytest"')
    settings.trust(tmp_path / "home", path.read_bytes(), str(path))
    assert load(tmp_path).test_cmd == "pytest"
    project_file(tmp_path, 'test_cmd = "pytesT"')
    assert load(tmp_path).test_cmd is None


@pytest.mark.case(66)
@pytest.mark.parametrize("name", ["sandbox", "openai_base_url", "host", "mcp_url"])
def test_some_settings_no_repository_may_set_even_trusted(tmp_path: Path, name: str) -> None:
    path = project_file(tmp_path, f'{name} = "none"')
    settings.trust(tmp_path / "home", path.read_bytes(), str(path))
    found = load(tmp_path)
    assert found.origins[name] == "default"


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "not valid JSON"), ("[]", "one JSON object"), ("\udcff", "not valid JSON")],
)
def test_a_corrupt_user_file_is_named_and_left_alone(
    tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "home" / "config.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=said):
        load(tmp_path)
    assert path.read_bytes() == content.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("name", "value"),
    [("EC_MAX_BYTES", "many"), ("EC_MAX_BYTES", "-1"), ("EC_TIMEOUT", "inf"), ("EC_SANDBOX", "x")],
)
def test_a_wrong_value_is_named_with_its_origin(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load(tmp_path, {name: value})


@pytest.mark.contract("N14")
def test_kept_values_are_read_back_and_others_survive(tmp_path: Path) -> None:
    user_file(tmp_path, max_turns=9, unknown_of_a_newer_version=1)
    settings.keep(tmp_path / "home", "model_name", "ollama:hermes3:8b")
    found = load(tmp_path)
    assert (found.model_name, found.max_turns) == ("ollama:hermes3:8b", 9)
    kept = json.loads((tmp_path / "home" / "config.json").read_text())
    assert kept["unknown_of_a_newer_version"] == 1


def test_every_setting_has_a_variable_and_a_help_line() -> None:
    for row in settings.rows():
        assert row.metadata["env"], row.name
        assert row.metadata["help"], row.name
    variables = [row.metadata["env"] for row in settings.rows()]
    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_user_file_that_is_no_file_is_said_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "config.json"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(ConfigError, match="not a plain file"):
        settings.load({}, environment={"EC_HOME": str(tmp_path)}, cwd=tmp_path)


def test_a_bad_flag_is_bad_usage(tmp_path: Path) -> None:
    environment = {"EC_HOME": str(tmp_path)}
    with pytest.raises(UsageError, match="timeout"):
        settings.load({"timeout": float("nan")}, environment=environment, cwd=tmp_path)
    with pytest.raises(ConfigError, match="EC_TIMEOUT"):
        settings.load({}, environment={**environment, "EC_TIMEOUT": "nan"}, cwd=tmp_path)
