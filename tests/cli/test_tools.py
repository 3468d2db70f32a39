"""``evercontext tools`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import evercontext

CATALOG: list[dict[str, Any]] = [
    {
        "toolKey": "clock:now",
        "serverName": "clock",
        "toolName": "now",
        "description": "Tell the current time.",
        "params": [{"name": "zone", "description": "time zone"}],
    },
    {
        "toolKey": "mail:send",
        "serverName": "mail",
        "toolName": "send",
        "description": "Send an e-mail.",
        "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}},
    },
]


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(CATALOG))
    return path


def test_a_line_is_answered_with_a_line(catalog: Path) -> None:
    done = evercontext(
        "tools",
        "discover",
        "--catalog",
        str(catalog),
        "--stdin",
        "--json",
        stdin="what time is it\n現在時刻\nsend an e-mail\n",
    )
    lines = [json.loads(line) for line in done.out.splitlines()]
    best = [line["results"][0]["toolKey"] for line in lines]
    assert (done.code, best) == (0, ["clock:now", "clock:now", "mail:send"])
    assert lines[2]["results"][0]["inputSchema"]["properties"] == {"to": {"type": "string"}}


@pytest.mark.contract("T37")
def test_our_own_tools_are_found(tmp_path: Path) -> None:
    done = evercontext("tools", "discover", "read a file", "--json", cwd=tmp_path)
    results = json.loads(done.out)["results"]
    assert done.code == 0, done.err
    assert "evercontext:read_file" in [one["toolKey"] for one in results[:3]]


@pytest.mark.parametrize("content", ["{", "{}", '["x"]', '[{"toolName": 1}]'])
def test_a_broken_catalog_is_a_usage_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(content)
    done = evercontext("tools", "discover", "x", "--catalog", str(path))
    assert done.code == 64
    assert "tools.json" in done.err


def test_escapes_of_a_foreign_catalog_are_shown_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{**CATALOG[0], "description": "time \x1b]52;c;x\x07"}]))
    done = evercontext("tools", "discover", "time", "--catalog", str(path))
    assert "\x1b" not in done.out
    assert "\\x1b" in done.out
