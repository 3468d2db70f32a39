from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from evercontext.models.vendors.codex import Codex, private_config
from evercontext.models.vendors.private_home import PrivateHome
from evercontext.models.vendors.program import _FEATURE, _OPTION, Facts
from evercontext.models.vendors.reply import event_of
from tests.models.vendors.stage import CODEX, recording

HOME = PrivateHome(Path("/h"), Path("/h/.codex"), Path("/h/work"))


def facts(version: str) -> Facts:
    known = recording("codex", version)
    features = {name: on == "true" for name, on in _FEATURE.findall(known["features"])}
    return Facts(version, tuple(_OPTION.findall(known["options"])), features)


@pytest.mark.parametrize("version", CODEX)
def test_arguments_are_those_the_version_knows(version: str) -> None:
    """C1: an unknown option or feature is fatal to Codex."""
    known = facts(version)
    words = Codex("m").arguments(known, HOME, None)
    options = [word for word in words if word.startswith("--")]
    assert set(options) <= set(known.options)
    assert words[0] == "exec"
    assert words[-1] == "-"
    assert words[words.index("--sandbox") + 1] == "read-only"
    disabled = {words[at + 1] for at, word in enumerate(words) if word == "--disable"}
    assert disabled <= {name for name, is_on in known.features.items() if is_on}
    for name in ("shell_tool", "unified_exec", "apps", "plugins", "multi_agent", "hooks", "goals"):
        assert (name in disabled) == known.features.get(name, False)
    assert ("--ephemeral" in words) == ("--ephemeral" in known.options)


@pytest.mark.parametrize("version", CODEX)
def test_the_literal_default_of_the_judge_stays_where_it_is_understood(version: str) -> None:
    known = facts(version)
    words = Codex(words=("exec", "--full-auto")).arguments(known, HOME, None)
    assert ("--full-auto" in words) == ("--full-auto" in known.options)
    assert "--skip-git-repo-check" in words
    assert words.count("--sandbox") == 1


def test_a_program_without_a_version_gets_the_users_words_as_they_are() -> None:
    assert Codex(words=("exec", "--full-auto")).arguments(Facts(), HOME, None) == [
        "exec",
        "--full-auto",
    ]


def test_the_private_configuration_holds_the_model_and_none_of_the_tools() -> None:
    """P3: MCP servers, hooks, profiles' tools and notify programs of the user's stay behind."""
    config = tomllib.loads("""
model = "gpt-5"
profile = "work"
notify = ["/bin/sh"]
sandbox_mode = "danger-full-access"
approval_policy = "never"
[profiles.work]
model_provider = "日本 \\"x\\""
model_reasoning_effort = "high"
[features]
shell_tool = true
[mcp_servers.a]
command = "/bin/sh"
[hooks]
[model_providers."日本 \\"x\\""]
name = "x"
base_url = "http://127.0.0.1:1/v1"
env_key = "K"
http_headers = { "X-A" = "b\\tc" }
request_max_retries = 0
[model_providers."日本 \\"x\\"".auth]
command = "/bin/sh"
[model_providers.other]
name = "other"
""")
    private = tomllib.loads(private_config(config))
    assert private["model_provider"] == '日本 "x"'
    assert private["model_providers"] == {
        '日本 "x"': {
            "name": "x",
            "base_url": "http://127.0.0.1:1/v1",
            "env_key": "K",
            "http_headers": {"X-A": "b\tc"},
            "request_max_retries": 0,
        }
    }
    assert (private["model"], private["model_reasoning_effort"]) == ("gpt-5", "high")
    assert private["sandbox_mode"] == "read-only"
    assert private["web_search"] == "disabled"
    assert not {"notify", "mcp_servers", "hooks", "features", "profiles", "profile"} & set(private)
    assert "/bin/sh" not in private_config(config)


@pytest.mark.parametrize(
    "kind",
    ["command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call", "new"],
)
def test_every_item_that_is_no_text_is_an_action(kind: str) -> None:
    """P3: also kinds that nobody knows yet."""
    for phase in ("item.started", "item.updated", "item.completed"):
        assert Codex().action({"type": phase, "item": {"type": kind}}) == kind


@pytest.mark.parametrize(
    "event",
    [
        {"type": "turn.completed", "usage": {}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "x"}},
        {"type": "item.completed", "item": {"type": "reasoning", "text": "x"}},
        {"type": "item.completed", "item": {"type": "error", "message": "a warning"}},
    ],
)
def test_text_reasoning_and_usage_are_none(event: dict[str, Any]) -> None:
    assert Codex().action(event) is None


def test_no_configuration_is_one_too() -> None:
    assert tomllib.loads(private_config({}))["approval_policy"] == "never"


@pytest.mark.parametrize("line", ["", "x", "[1]", "{", '{"a": 1} x', "[" * 100_000, "{" * 100_000])
def test_lines_that_are_no_event_are_none(line: str) -> None:
    assert event_of(line) is None
