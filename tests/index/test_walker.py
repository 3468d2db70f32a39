from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.files.policy import agent_policy
from evercontext.index.walker import Walker
from evercontext.testing import git, tiny_repository
from tests.index.world import opened, write

CANARY = "canary9f8e7d6c5b4a"
TREE = {
    "src/a.py": "def a(): pass\n",
    "src/b.log": "noise",
    "build/out.py": "x = 1\n",
    "keep/me.md": "# hi\n",
    "keep/.gitignore": "*.tmp.py\n!good.tmp.py\n",
    "keep/x.tmp.py": "1\n",
    "keep/good.tmp.py": "1\n",
    ".gitignore": "build/\n*.log\n",
    ".evercontextignore": "private/\n",
    "private/p.py": "1\n",
    "node_modules/m/i.js": "1\n",
    "package-lock.json": "{}\n",
}
WANTED = ["keep/good.tmp.py", "keep/me.md", "src/a.py"]


async def _walk(root: Path) -> list[str]:
    found = await Walker(root, agent_policy()).walk()
    return [f.path for f in found if not f.path.startswith(".")]


async def test_ignore_files_count_outside_git(tmp_path: Path) -> None:
    assert await _walk(write(tmp_path, TREE)) == WANTED


async def test_ignore_files_count_inside_git(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    git(tmp_path, "init", "-q")
    assert await _walk(tmp_path) == WANTED
    assert await Walker(tmp_path, agent_policy()).belongs(["src/a.py", "build/out.py"]) == [
        "src/a.py"
    ]


async def test_submodules_and_nested_repositories_are_walked(tmp_path: Path) -> None:
    inner = tiny_repository(tmp_path / "inner", {"lib.py": "def lib(): pass\n"})
    outer = tiny_repository(tmp_path / "outer", {"main.py": "x = 1\n"})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "vendored")
    tiny_repository(outer / "nested", {"deep.py": "y = 1\n"})
    assert await _walk(outer) == ["main.py", "nested/deep.py", "vendored/lib.py"]


async def test_a_worktree_is_walked(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", {"a.py": "x = 1\n"})
    git(tree, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert await _walk(tmp_path / "linked") == ["a.py"]


@pytest.mark.case(127)
async def test_odd_names_do_not_confuse(tmp_path: Path) -> None:
    names = ["a b.py", "-x.py", "quote'\".py", "ünï.py", "日本語.py"]
    write(tmp_path, dict.fromkeys(names, "x = 1\n"))
    (tmp_path / "new\nline.py").write_text("x = 1\n", "utf-8")
    (tmp_path / os.fsdecode(b"\xff.py")).write_text("x = 1\n", "utf-8")
    git(tmp_path, "init", "-q")
    assert await _walk(tmp_path) == sorted(names)


@pytest.mark.case(133, 134)
async def test_secrets_and_archives_never_get_in(tmp_path: Path) -> None:
    import gzip

    write(
        tmp_path,
        {
            ".env": f"KEY={CANARY}\n",
            ".env.production": CANARY,
            "deploy/id_rsa": CANARY,
            "deploy/server.pem": CANARY,
            ".ssh/config": CANARY,
            "app.py": f'API_KEY = "{CANARY}"\nTOKEN = "ghp_{CANARY}{CANARY}"\n',
            "conf.yaml": f'password: "{CANARY}"\n',
        },
    )
    (tmp_path / "x.gz").write_bytes(gzip.compress(CANARY.encode()))
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    async with opened(tmp_path) as index:
        await index.update()
        assert sorted(await index.table.rows()) == ["app.py", "conf.yaml"]
        for query in (CANARY, "api key token password"):
            for hit in (await index.search(query)).hits:
                assert CANARY not in hit.text
    for file in (tmp_path / ".evercontext").iterdir():
        assert CANARY.encode() not in file.read_bytes().lower()


@pytest.mark.case(131)
async def test_what_is_no_text_is_skipped_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    (tmp_path / "line.js").write_text("x" * 30_000, "utf-8")
    (tmp_path / "huge.py").write_text("x = 1\n" * 200_000, "utf-8")
    async with opened(tmp_path) as index:
        report = await index.update()
        assert set(report.skipped) == {"binary.py", "huge.py", "latin.py", "line.js"}
        assert all(report.skipped.values())
        assert (await index.search("x")).hits == ()
        assert (await index.update()).touched == 0
