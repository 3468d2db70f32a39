from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import postgres
from tests.cli.command import evercontext, home


@pytest.mark.slow
def test_a_person_moves_to_a_server_and_back(tmp_path: Path) -> None:
    shared = {"EC_DATABASE_URL": postgres.new_database()}
    assert evercontext("memory", "add", "The heron nests here", cwd=tmp_path).code == 0
    moved = evercontext("db", "copy", "--from", "home", "--to", "shared", env=shared)
    assert moved.code == 0, moved.err
    assert "both hold the same" in moved.out
    listed = evercontext("memory", "list", cwd=tmp_path, env=shared)
    assert "The heron nests here" in listed.out
    state = json.loads(evercontext("db", "status", "--json", env=shared).out)
    assert state["kind"] == "PostgreSQL"
    assert state["rows"]["memories"] == 1
    again = evercontext("db", "copy", "--from", "home", "--to", "shared", env=shared)
    assert again.code == 64
    assert "already" in again.err
    file = str(tmp_path / "back.db")
    back = evercontext("db", "copy", "--from", "shared", "--to", file, env=shared)
    assert back.code == 0, back.err
    plain = evercontext("db", "status").out
    assert str(home() / "memory.db") in plain


def test_what_is_no_database_is_named_with_its_fix(tmp_path: Path) -> None:
    missing = evercontext("db", "copy", "--from", str(tmp_path / "none.db"), "--to", "home")
    assert missing.code != 0
    assert "there is no database" in missing.err
    unset = evercontext("db", "copy", "--from", "shared", "--to", "home")
    assert "EC_DATABASE_URL is not set" in unset.err
    assert not (tmp_path / "none.db").exists()


def test_migrate_says_which_schema_there_is() -> None:
    first = evercontext("db", "migrate")
    assert first.code == 0
    assert "has schema" in first.out
