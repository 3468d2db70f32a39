from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.models.vendors.gemini import Gemini, private_settings
from evercontext.models.vendors.private_home import PrivateHome
from evercontext.models.vendors.program import _OPTION, Facts
from tests.models.vendors.stage import GEMINI, recording


def home(folder: Path) -> PrivateHome:
    made = PrivateHome(folder, folder / ".gemini", folder / "work")
    made.settings.mkdir()
    return made


@pytest.mark.parametrize("version", GEMINI)
def test_arguments_are_those_the_version_knows(tmp_path: Path, version: str) -> None:
    """P1, P2: no plan mode, which the model can leave; every tool is denied by policy."""
    options = tuple(_OPTION.findall(recording("gemini", version)["options"]))
    words = Gemini("m").arguments(Facts(version, options), home(tmp_path), None)
    assert {word for word in words if word.startswith("--")} <= set(options)
    assert not {"plan", "yolo", "auto_edit"} & set(words)
    assert ("--skip-trust" in words) == (version != "0.33.0")
    assert words[words.index("--policy") + 1] == str(tmp_path / "policy.toml")


def test_the_private_folder_denies_every_tool(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / ".env").write_text(
        'export GEMINI_API_KEY="from the file"\nGEMINI_SANDBOX=docker\nGOOGLE_CLOUD_PROJECT=p\n'
    )
    private = tmp_path / "private"
    private.mkdir()
    made = home(private)
    changed = Gemini().prepare(made, user, {"GOOGLE_CLOUD_PROJECT": "from the environment"})
    policy = (made.root / "policy.toml").read_text()
    assert 'toolName = "*"' in policy
    assert 'decision = "deny"' in policy
    assert changed["GEMINI_CLI_HOME"] == str(made.root)
    assert changed["GEMINI_API_KEY"] == "from the file"
    assert not {"GEMINI_SANDBOX", "GOOGLE_CLOUD_PROJECT"} & set(changed)


def test_only_login_and_model_of_the_users_settings_count(tmp_path: Path) -> None:
    """P2: yolo, folder trust, MCP servers, extensions and hooks do not matter."""
    settings = private_settings(
        {
            "security": {"auth": {"selectedType": "oauth-personal"}, "folderTrust": {}},
            "model": {"name": "gemini-3-pro"},
            "general": {"defaultApprovalMode": "yolo"},
            "tools": {"approvalMode": "yolo", "discoveryCommand": "/bin/sh"},
            "mcpServers": {"a": {"command": "/bin/sh"}},
            "hooks": {"SessionStart": [{"command": "/bin/sh"}]},
        }
    )
    assert settings["security"] == {"auth": {"selectedType": "oauth-personal"}}
    assert settings["model"] == {"name": "gemini-3-pro"}
    assert not {"yolo", "/bin/sh"} & set(json.dumps(settings).replace('"', " ").split())
    older = private_settings({"selectedAuthType": "vertex-ai", "model": "x"})
    assert older["security"] == {"auth": {"selectedType": "vertex-ai"}}


def test_settings_with_comments_are_read(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{\n// mine\n"selectedAuthType": "vertex-ai"}')
    made = home(tmp_path)
    Gemini().prepare(made, tmp_path, {})
    written = json.loads((made.settings / "settings.json").read_text())
    assert written["security"]["auth"]["selectedType"] == "vertex-ai"


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ({"type": "tool_use", "tool_name": "run_shell_command"}, "run_shell_command"),
        ({"type": "tool_result", "status": "error"}, "tool_result"),
        ({"type": "result", "status": "success", "stats": {"tool_calls": 1}}, "a tool call"),
        ({"type": "something_new"}, "something_new"),
        ({"type": "message", "role": "assistant", "content": "x"}, None),
        ({"type": "result", "status": "success", "stats": {"tool_calls": 0}}, None),
    ],
)
def test_what_is_no_text_is_an_action(event: dict[str, Any], action: str | None) -> None:
    """P2, P3."""
    assert Gemini().action(event) == action
