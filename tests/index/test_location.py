from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.index.location import FOLDER, index_folder
from evercontext.testing import git

powerful = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("place", ["bare", "bare/hooks/../refs/..", "tree/.git", "tree/.git/info"])
async def test_nothing_is_put_inside_git(tmp_path: Path, place: str) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    git(tmp_path, "init", "-q", "tree")
    folder = await index_folder(tmp_path / place, tmp_path / "home")
    assert folder.is_relative_to(tmp_path / "home")
    assert not (tmp_path / place / FOLDER).exists()
    inside = await index_folder(tmp_path / "tree", tmp_path / "home")
    assert inside == tmp_path / "tree" / FOLDER


async def test_a_home_that_is_no_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file", "utf-8")
    with pytest.raises(ConfigError, match="EC_HOME"):
        await index_folder(tmp_path, tmp_path / "home", writing=False)


@powerful
async def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(mode=0o500)
    told: list[str] = []
    folder = await index_folder(tmp_path, tmp_path / "home", tell=told.append)
    assert folder.is_relative_to(tmp_path / "home")
    assert "cannot be written" in told[0]
