from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.index import git_hook
from evercontext.index.location import FOLDER, index_folder, prepare_folder
from evercontext.index.queue_worker import drain
from evercontext.testing import git, tiny_repository
from tests.index.world import opened, write


def _repository(tmp_path: Path) -> Path:
    tree = tiny_repository(tmp_path / "tree", {"a.py": "def first(): pass\n"})
    prepare_folder(tree)
    return tree


def _commit(tree: Path) -> int:
    """Commit everything and return git's exit code."""
    git(tree, "add", "--all")
    done = subprocess.run(["git", "commit", "-qm", "x"], cwd=tree, capture_output=True, timeout=60)
    return done.returncode


def _marks(tree: Path) -> str:
    spool = tree / FOLDER / git_hook.SPOOL
    return spool.read_text("utf-8") if spool.is_file() else ""


def _wait_for(file: Path) -> None:
    """Wait until a process in the background has written a file."""
    for _ in range(1_200):
        if file.exists() and file.read_text("utf-8"):
            return
        time.sleep(0.05)
    raise AssertionError(f"{file.name} was not written")


@pytest.mark.contract("E6")
async def test_a_commit_leaves_a_mark_and_the_next_drain_indexes_it(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    await git_hook.install(tree, program="/nonexistent/evercontext")
    async with opened(tree) as index:
        await index.update()
        write(tree, {"new.py": "def brand_new(): pass\n"})
        (tree / "a.py").unlink()
        assert _commit(tree) == 0
        assert _marks(tree) == "post-commit\n"
        await drain(index, tree / FOLDER)
        assert sorted(await index.table.rows()) == ["new.py"]
    assert _marks(tree) == ""


@pytest.mark.contract("E6")
async def test_the_hook_starts_the_indexer_beside_the_commit(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    seen = tmp_path / "seen"
    program = tmp_path / "program with space"
    program.write_text(f'#!/bin/sh\nenv > "{seen}.env"\necho "$@" > "{seen}"\n', "utf-8")
    program.chmod(0o755)
    await git_hook.install(tree, program=str(program))
    write(tree, {"b.py": "x = 1\n"})
    assert _commit(tree) == 0
    _wait_for(seen)
    assert seen.read_text("utf-8") == "hook drain --root .\n"
    assert "GIT_INDEX_FILE" not in Path(f"{seen}.env").read_text("utf-8")


@pytest.mark.case(126)
@pytest.mark.parametrize("fault", ["missing", "full", "unreadable", "fifo", "link", "hang", "none"])
async def test_no_fault_of_ours_blocks_a_commit(tmp_path: Path, fault: str) -> None:
    tree = _repository(tmp_path)
    program = tmp_path / "hanging"
    program.write_text("#!/bin/sh\nsleep 3\nexit 7\n", "utf-8")
    program.chmod(0o755)
    await git_hook.install(tree, program=str(program) if fault == "hang" else "/nonexistent")
    spool = tree / FOLDER / git_hook.SPOOL
    outside = tmp_path / "outside"
    if fault == "full":
        spool.symlink_to("/dev/full")
    elif fault == "link":
        spool.symlink_to(outside)
    elif fault == "fifo":
        os.mkfifo(spool)
    elif fault == "unreadable":
        spool.mkdir()
    elif fault == "none":
        for file in (tree / FOLDER).iterdir():
            file.unlink()
        (tree / FOLDER).rmdir()
    write(tree, {"c.py": "def found_later(): pass\n"})
    assert _commit(tree) == 0
    assert not outside.exists()
    if spool.is_symlink() or spool.is_fifo():
        spool.unlink()
    async with opened(tree, await index_folder(tree, tmp_path / "home")) as index:
        assert (await index.search("found_later")).hits[0].path == "c.py"


@pytest.mark.case(127)
async def test_worktrees_mark_their_own_index(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    await git_hook.install(tree, program="/nonexistent")
    linked = tmp_path / "linked"
    git(tree, "worktree", "add", "-q", "-b", "other", str(linked))
    prepare_folder(linked)
    (tree / FOLDER / git_hook.SPOOL).unlink(missing_ok=True)
    write(linked, {"b.py": "x = 1\n"})
    assert _commit(linked) == 0
    assert "post-commit" in _marks(linked)
    assert _marks(tree) == ""


@pytest.mark.case(127)
async def test_a_root_below_the_top_and_a_submodule_have_their_own(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", {"app/a.py": "x = 1\n"})
    prepare_folder(tree / "app")
    await git_hook.install(tree / "app", program="/nonexistent")
    write(tree, {"app/b.py": "x = 1\n"})
    assert _commit(tree) == 0
    assert "post-commit" in _marks(tree / "app")
    inner = tiny_repository(tmp_path / "inner", {"lib.py": "x = 1\n"})
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    prepare_folder(tree / "sub")
    installed = await git_hook.install(tree / "sub", program="/nonexistent")
    assert "modules" in installed.folder.parts
    write(tree / "sub", {"more.py": "x = 1\n"})
    assert _commit(tree / "sub") == 0
    assert "post-commit" in _marks(tree / "sub")


async def test_an_aborted_commit_leaves_nothing(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    await git_hook.install(tree, program="/nonexistent")
    refuse = tree / ".git/hooks/pre-commit"
    refuse.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    refuse.chmod(0o755)
    write(tree, {"b.py": "x = 1\n"})
    assert _commit(tree) != 0
    assert _marks(tree) == ""


@pytest.mark.parametrize(
    "existing",
    [
        "#!/bin/sh\necho mine >> ran\n",
        "#!/usr/bin/env bash\nexec sh -c 'echo mine >> ran'\n",
        "#!/usr/bin/env python3\nopen('ran', 'a').write('mine\\n')\n",
    ],
)
async def test_an_existing_hook_still_runs_and_comes_back(tmp_path: Path, existing: str) -> None:
    tree = _repository(tmp_path)
    mine = tree / ".git/hooks/post-commit"
    mine.write_text(existing, "utf-8")
    mine.chmod(0o755)
    for _ in range(2):
        await git_hook.install(tree, program="/nonexistent")
    write(tree, {"b.py": "x = 1\n"})
    assert _commit(tree) == 0
    assert (tree / "ran").read_text("utf-8") == "mine\n"
    assert _marks(tree) == "post-commit\n"
    assert "post-commit" in (await git_hook.status(tree)).hooks
    await git_hook.uninstall(tree)
    assert mine.read_text("utf-8") == existing
    assert (await git_hook.status(tree)).hooks == ()


async def test_a_configured_hooks_path_is_honoured(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    git(tree, "config", "core.hooksPath", str(tmp_path / "hooks"))
    done = await git_hook.install(tree, program="/nonexistent")
    assert (done.folder, done.elsewhere) == (tmp_path / "hooks", True)
    other = tiny_repository(tmp_path / "other", {"a.py": "x = 1\n"})
    git(other, "config", "core.hooksPath", str(tmp_path / "hooks"))
    write(other, {"b.py": "x = 2\n"})
    assert _commit(other) == 0
    assert not (other / FOLDER).exists()
    write(tree, {"b.py": "x = 2\n"})
    assert _commit(tree) == 0
    assert _marks(tree) == "post-commit\n"


@pytest.mark.case(126)
async def test_many_commits_call_the_indexer_once_until_it_took_the_marks(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho called >> '{tmp_path}/calls'\n", "utf-8")
    program.chmod(0o755)
    await git_hook.install(tree, program=str(program))
    for i in range(5):
        write(tree, {"b.py": f"x = {i}\n"})
        assert _commit(tree) == 0
    _wait_for(tmp_path / "calls")
    assert (tmp_path / "calls").read_text("utf-8") == "called\n"
    assert _marks(tree) == "post-commit\n"
    hour_ago = time.time() - 3600
    os.utime(tree / FOLDER / git_hook.SPOOL, (hour_ago, hour_ago))
    (tmp_path / "calls").unlink()
    write(tree, {"b.py": "x = 'the first call was lost'\n"})
    assert _commit(tree) == 0
    _wait_for(tmp_path / "calls")


async def test_marks_outlive_a_worker_that_dies_with_them(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    (tree / FOLDER / git_hook.SPOOL).write_text("post-commit\n", "utf-8")
    assert git_hook.set_marks_aside(tree / FOLDER) is not None
    async with opened(tree) as index:
        assert [r.committed for r in await drain(index, tree / FOLDER)] == [1, 0]
    assert git_hook.set_marks_aside(tree / FOLDER) is None


async def test_a_patch_from_a_mail_is_a_commit_too(tmp_path: Path) -> None:
    tree = _repository(tmp_path)
    write(tree, {"b.py": "def mailed(): pass\n"})
    assert _commit(tree) == 0
    patch = subprocess.run(
        ["git", "format-patch", "-1", "--stdout"], cwd=tree, capture_output=True, check=True
    ).stdout
    git(tree, "reset", "-q", "--hard", "HEAD^")
    await git_hook.install(tree, program="/nonexistent")
    subprocess.run(["git", "am", "-q"], cwd=tree, input=patch, check=True, capture_output=True)
    assert "post-applypatch" in _marks(tree)


_PRE_COMMIT = """
default_install_hook_types: [pre-commit, post-commit]
repos:
- repo: local
  hooks:
  - {id: mine, name: mine, language: system, entry: sh -c 'echo before >> ran',
     stages: [pre-commit], always_run: true, pass_filenames: false}
  - {id: after, name: after, language: system, entry: sh -c 'echo after >> ran',
     stages: [post-commit], always_run: true, pass_filenames: false}
"""


@pytest.mark.parametrize("order", ["ours first", "ours last"])
async def test_pre_commit_and_ours_live_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    tree = _repository(tmp_path)
    write(tree, {".pre-commit-config.yaml": _PRE_COMMIT, ".gitignore": "ran\n"})
    git(tree, "add", "--all")
    install = [sys.executable, "-m", "pre_commit", "install"]
    if order == "ours first":
        await git_hook.install(tree, program="/nonexistent")
    subprocess.run(install, cwd=tree, check=True, capture_output=True)
    if order == "ours last":
        await git_hook.install(tree, program="/nonexistent")
    write(tree, {"b.py": "x = 1\n"})
    assert _commit(tree) == 0
    assert (tree / "ran").read_text("utf-8").split() == ["before", "after"]
    assert _marks(tree) == "post-commit\n"


async def test_a_bare_repository_has_nothing_to_index(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare")
    with pytest.raises(ConfigError, match="work tree"):
        await git_hook.install(tmp_path)


async def test_outside_git_there_is_nothing_to_hook(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="git"):
        await git_hook.install(tmp_path)
