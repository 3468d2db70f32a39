from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.storage.opener import open_store
from evercontext.storage.store import Store
from tests import postgres


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """No address, which means a file, and that of a server: what holds for one holds for both."""
    return postgres.new_database() if request.param == "postgres" else ""


@pytest.fixture
def url() -> str:
    """An empty database of a real server."""
    return postgres.new_database()


@pytest.fixture
async def database(database_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "memory.db", database_url)
    yield store
    await store.close()


@pytest.fixture
def tokyo() -> Iterator[None]:
    """The machine's clock is nine hours ahead of Greenwich."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


def masked(text: str) -> str:
    """What a store is given to keep one secret out."""
    return text.replace("hunter2", "[secret]")


@pytest.fixture
def memories(database: Store) -> MemoryStore:
    return MemoryStore(database)


@pytest.fixture
def retrieval(database: Store) -> RetrievalOrchestrator:
    return RetrievalOrchestrator(database)
