from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.memory.orchestrator import RetrievalOrchestrator
from evercontext.memory.store import MemoryStore
from evercontext.storage.sqlite import SqliteStore


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "memory.db")
    yield store
    await store.close()


@pytest.fixture
def memories(database: SqliteStore) -> MemoryStore:
    return MemoryStore(database)


@pytest.fixture
def retrieval(database: SqliteStore) -> RetrievalOrchestrator:
    return RetrievalOrchestrator(database)
