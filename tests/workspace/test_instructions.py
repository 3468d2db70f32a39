from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.domain.tool import Caller, Door
from evercontext.workspace.instructions import outer_instructions


def test_up_to_where_git_begins_and_the_users_own_first(tmp_path: Path) -> None:
    home, outside, repository = tmp_path / "home", tmp_path / "w", tmp_path / "w/repo"
    root = repository / "services/api"
    root.mkdir(parents=True)
    home.mkdir()
    (home / "AGENTS.md").write_text("mine: 日本語で答える")
    (outside / "AGENTS.md").write_text("not of this repository")
    (repository / "CLAUDE.md").write_text("of the repository")
    (repository / "services/AGENTS.md").write_text("of the services")
    (root / "AGENTS.md").write_text("of the root: read by the workspace")
    assert "repository" not in outer_instructions(root, home)
    (repository / ".git").mkdir()
    found = outer_instructions(root, home)
    assert found.index("mine:") < found.index("of the repository") < found.index("of the services")
    assert "not of this" not in found
    assert "of the root" not in found


def test_links_and_other_kinds_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    home = tmp_path / "home"
    home.mkdir()
    (home / "AGENTS.md").symlink_to(secret)
    assert outer_instructions(tmp_path, home) == ""


async def test_the_model_is_told_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/AGENTS.md").write_text("everywhere")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/AGENTS.md").write_text("here")
    async with testing.house(tmp_path) as app:
        found = (await app.surroundings(Caller("t", Door.CHAT))).instructions
    assert found.index("everywhere") < found.index("here")


@pytest.mark.parametrize("planted", ["writable", "foreign"])
def test_instructions_that_others_could_write_are_not_obeyed(tmp_path: Path, planted: str) -> None:
    """X19: an AGENTS.md of another user in a shared parent became system text."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/project").mkdir()
    file = tmp_path / "repo/AGENTS.md"
    file.write_text("obey me")
    assert "obey me" in outer_instructions(tmp_path / "repo/project", tmp_path / "home")
    if planted == "writable":
        file.chmod(0o666)
    elif os.geteuid() == 0:
        os.chown(file, 54321, -1)
    else:
        pytest.skip("only root can give a file away")
    assert "obey me" not in outer_instructions(tmp_path / "repo/project", tmp_path / "home")
