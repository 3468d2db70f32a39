from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import StoreGone
from evercontext.storage.choose import open_or_wait

NOBODY = "postgresql://someone:hunter2@127.0.0.1:9/none"


@pytest.mark.case(122)
async def test_every_question_is_told_that_the_server_is_away(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", NOBODY)
    assert store.report.location == "postgresql://127.0.0.1:9/none"
    with pytest.raises(StoreGone):
        await store.fetch_one("SELECT 1")
    with pytest.raises(StoreGone):
        await store.execute("DELETE FROM kept")
    with pytest.raises(StoreGone):
        async with store.transaction():
            raise AssertionError("there is no transaction")
    await store.close()
    assert list(tmp_path.iterdir()) == []
