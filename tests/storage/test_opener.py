from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.storage.opener import open_store, outbox_path
from tests import postgres


async def test_without_an_address_it_is_the_file(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "memory.db")
    assert store.report.location == str(tmp_path / "memory.db")
    await store.close()


async def test_an_address_is_a_server_and_no_file_is_made(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "memory.db", postgres.new_database())
    assert store.report.location.startswith("postgresql://")
    assert list(tmp_path.iterdir()) == []
    await store.close()


@pytest.mark.parametrize("url", ["mysql://host/x", "host/x", "/a/file"])
async def test_what_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="EC_DATABASE_URL"):
        await open_store(tmp_path / "memory.db", url)


def test_an_address_has_one_outbox_whatever_its_password(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    first = outbox_path(path, "postgresql://me:one@db.example/team")
    assert first == outbox_path(path, "postgresql://me:two@db.example/team")
    assert first == outbox_path(path, "postgresql://me@db.example/team?password=three")
    assert first != outbox_path(path, "postgresql://you:one@db.example/team")
    assert first != outbox_path(path, "postgresql://me:one@db.example/other")
