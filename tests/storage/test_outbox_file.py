from __future__ import annotations

import stat
from pathlib import Path

import pytest

from evercontext.errors import StoreProblem
from evercontext.storage.outbox_file import Outbox, name_of

PUT = "INSERT INTO waiting (id, project, user_id, body, sent) VALUES (?, '', '', 'secret words', 0)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox" / "a.db"


def test_asking_makes_no_file_and_what_is_made_is_private(path: Path) -> None:
    assert Outbox(path).count() == 0
    assert not path.parent.exists()
    with Outbox(path).held() as held:
        held.execute(PUT, ("a",))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Outbox(path).count() == 1


def test_what_fails_half_way_did_not_happen(path: Path) -> None:
    with pytest.raises(StoreProblem), Outbox(path).held() as held:
        held.execute(PUT, ("a",))
        held.execute(PUT, ("a",))
    assert Outbox(path).count() == 0


def test_a_number_is_never_used_twice_and_deleted_words_are_gone(path: Path) -> None:
    box = Outbox(path)
    with box.held() as held:
        held.execute(PUT, ("a",))
        name = name_of(held)
    with box.held() as held:
        held.execute("DELETE FROM waiting")
    assert b"secret words" not in path.read_bytes()
    with box.held() as held:
        held.execute(PUT, ("b",))
        assert held.execute("SELECT number FROM waiting").fetchone() == {"number": 2}
        assert name_of(held) == name
