from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from evercontext.errors import StoreTimeout
from evercontext.storage.sqlite_connection import connect, create_private, stopped_after

COUNTED = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) SELECT max(i) AS n FROM n"
)


def test_a_dangling_link_makes_no_file_elsewhere(tmp_path: Path) -> None:
    link = tmp_path / "store.db"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        create_private(link)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "store.db"
    create_private(file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"kept")
    create_private(file)
    assert file.read_bytes() == b"kept"


def wait() -> int:
    time.sleep(0.5)
    return 0


@pytest.mark.case(117)
def test_work_is_what_stops_a_query_and_not_waiting() -> None:
    with closing(connect(":memory:")) as link:
        link.create_function("wait", 0, wait)
        # Enough steps to be looked at after it has waited for longer than it may work.
        patient = COUNTED.format(" WHERE i < 20000") + " WHERE i > (SELECT wait())"
        with stopped_after(link, 0.2):
            assert link.execute(patient).fetchall() == [{"n": 20_000}]
        with pytest.raises(StoreTimeout, match="200 ms"), stopped_after(link, 0.2):
            link.execute(COUNTED.format("")).fetchall()
        assert link.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]
