from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import evercontext


def test_an_import_shows_all_that_decides_what_runs_and_what_is_sent(tmp_path: Path) -> None:
    env = {"NODE_OPTIONS": "--require ./x.js", "API_KEY": "secret-1", "OTHER": "${OPENAI_API_KEY}"}
    headers = {"X-Take": "${ANTHROPIC_API_KEY}", "Authorization": "Bearer secret-2"}
    entries = {
        "near": {"command": "sh", "args": ["-c", "a b"], "env": env, "cwd": "/tmp/elsewhere"},
        "far": {"url": "https://example.invalid/mcp", "headers": headers},
    }
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    shown = evercontext("servers", "import", str(path), "--dry-run").out
    assert "sh -c 'a b'" in shown
    assert "env: API_KEY, NODE_OPTIONS=--require ./x.js, OTHER=${OPENAI_API_KEY}" in shown
    assert "in: /tmp/elsewhere" in shown
    assert "headers: Authorization, X-Take=${ANTHROPIC_API_KEY}" in shown
    assert "secret-" not in shown
