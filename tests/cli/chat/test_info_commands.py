from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.testing import write_script
from tests.cli.command import evercontext


@pytest.mark.slow
def test_servers_and_memories_can_be_looked_at(tmp_path: Path) -> None:
    added = evercontext("servers", "add", "clock", "--", "clock-server", "--utc", cwd=tmp_path)
    assert added.code == 0, added.err
    kept = evercontext("memory", "add", "The deploy key is on the blue shelf", cwd=tmp_path)
    assert kept.code == 0, kept.err
    model = write_script(tmp_path / "s.jsonl", [{"text": "hi"}])
    said = "/mcp\n/memory\n/memory deploy key\n/memory zebra\n"
    done = evercontext("chat", "-m", model, cwd=tmp_path, stdin=said)
    assert done.code == 0, done.err
    assert "on   clock  clock-server --utc" in done.out + done.err
    assert (done.out + done.err).count("blue shelf") >= 2


def test_status_names_the_gateway_without_its_login(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.jsonl", [{"text": "ok"}])
    given = {"EC_MCP_URL": "http://me:secret@127.0.0.1:9"}
    ended = evercontext("chat", "-m", model, cwd=tmp_path, stdin="/status\n", env=given)
    assert "files     behind http://127.0.0.1:9" in ended.out
    assert "secret" not in ended.out
