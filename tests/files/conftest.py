from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.files.contained_paths import Root
from evercontext.files.open_beneath import Openat2, Walk


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root with a sibling whose name begins the same way."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil" / "s.txt").write_text("SECRET")
    return tmp_path / "root"


@pytest.fixture(params=[Openat2, Walk], ids=["openat2", "walk"])
def root(request: pytest.FixtureRequest, place: Path) -> Iterator[Root]:
    with Root.open(place, strategy=request.param) as found:
        yield found
