from __future__ import annotations

import json
import os
from pathlib import Path

from evercontext.process.listening_ports import announced, ports_of_servers


def test_ports_are_ours_for_as_long_as_their_server_lives(tmp_path: Path) -> None:
    assert ports_of_servers(tmp_path) == frozenset()
    with announced(tmp_path, [4001]), announced(tmp_path, {4002, 4003}):
        assert ports_of_servers(tmp_path) == {4001, 4002, 4003}
    assert ports_of_servers(tmp_path) == frozenset()


def test_notes_of_dead_servers_and_broken_ones_count_for_nothing(tmp_path: Path) -> None:
    with announced(tmp_path, [4001]):
        note = next((tmp_path / "listening").glob("*.json"))
        entry = json.loads(note.read_text())
        # The same number, born at another time: another process.
        entry["owner"]["born"] = "1"
        dead = note.with_name("dead.json")
        dead.write_text(json.dumps({**entry, "ports": [4009]}))
        note.with_name("broken.json").write_text("{")
        note.with_name("odd.json").write_text('{"owner": 1, "ports": null}')
        assert ports_of_servers(tmp_path) == {4001}
        assert not dead.exists()
        assert entry["owner"]["pid"] == os.getpid()
