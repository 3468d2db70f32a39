from __future__ import annotations

import os
from pathlib import Path

from evercontext.files.private_folders import make_private
from tests.cli.command import evercontext, home
from tests.journeys.story import call, script


def test_folders_of_the_home_folder_are_private_whatever_the_umask_says(tmp_path: Path) -> None:
    home().mkdir(mode=0o755, exist_ok=True)
    (project := tmp_path / "project").mkdir()
    wanted = call("writeFile", path="a.py", content="x = 1\n")
    model = script(tmp_path / "s.jsonl", {"tool_calls": [wanted]}, {"text": "Done."})
    before = os.umask(0)
    try:
        done = evercontext("run", "-m", model, "--no-auto-test", "--task", "x", cwd=project)
    finally:
        os.umask(before)
    assert done.code == 0, done.err
    folders = [path for path in home().rglob("*") if path.is_dir()]
    assert "journal" in [path.name for path in folders]
    assert [path.name for path in folders if path.stat().st_mode & 0o077] == []


def test_an_open_folder_that_is_ours_is_closed(tmp_path: Path) -> None:
    (folder := tmp_path / "journal").mkdir()
    folder.chmod(0o755)
    (tmp_path / "link").symlink_to(theirs := tmp_path / "theirs")
    theirs.mkdir()
    theirs.chmod(0o755)
    for each in (folder, tmp_path / "link"):
        make_private(each)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert theirs.stat().st_mode & 0o777 == 0o755, "a link leads to what is not ours"
