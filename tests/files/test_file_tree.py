from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evercontext.errors import (
    AlreadyExists,
    Changed,
    EverContextError,
    NotFound,
    NotUtf8,
    ReadOnlyTree,
    TooLarge,
)
from evercontext.files.file_io import digest
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.policy import gateway_policy

T = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def tree(place: Path, tmp_path: Path) -> Iterator[Tree]:
    tree = Tree.open(place, gateway_policy(), tmp_path / "home")
    yield tree
    tree.close()


@pytest.mark.contract("E10", "E11")
def test_write_then_read(tree: Tree, place: Path) -> None:
    done = tree.write("app/main.py", "print('こんにちは')\n", WriteMode.CREATE, trace_id=T)
    assert (done.path, done.created) == ("app/main.py", True)
    assert (place / "app/main.py").read_text() == "print('こんにちは')\n"
    found = tree.read("./app/main.py")
    assert (found.path, found.sha256) == ("app/main.py", done.sha256)


@pytest.mark.contract("E11", "E55")
def test_the_three_modes(tree: Tree) -> None:
    tree.write("a.txt", "one", WriteMode.CREATE, trace_id=T)
    with pytest.raises(AlreadyExists):
        tree.write("a.txt", "two", WriteMode.CREATE, trace_id=T)
    tree.write("a.txt", "two", WriteMode.OVERWRITE, trace_id=T)
    tree.write("a.txt", "two", WriteMode.OVERWRITE, trace_id=T)
    tree.write("a.txt", "+", WriteMode.APPEND, trace_id=T)
    tree.write("new.txt", "appended to nothing", WriteMode.APPEND, trace_id=T)
    assert tree.read("a.txt").content == "two+"
    assert tree.read("new.txt").content == "appended to nothing"


def test_permissions_survive_and_no_temporary_file_stays(tree: Tree, place: Path) -> None:
    (place / "run.py").write_text("old")
    (place / "run.py").chmod(0o751)
    tree.write("run.py", "new", trace_id=T)
    assert (place / "run.py").stat().st_mode & 0o777 == 0o751
    assert os.listdir(place) == ["run.py"]


def test_new_files_follow_the_umask(tree: Tree, place: Path) -> None:
    old = os.umask(0o027)
    try:
        tree.write("n.txt", "x", trace_id=T)
    finally:
        os.umask(old)
    assert (place / "n.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.case(46)
def test_if_match(tree: Tree, place: Path) -> None:
    tree.write("a.txt", "one", trace_id=T)
    tree.write("a.txt", "two", trace_id=T, if_match=digest(b"one"))
    (place / "a.txt").write_text("the user's")
    with pytest.raises(Changed, match="changed"):
        tree.write("a.txt", "three", trace_id=T, if_match=digest(b"two"))
    assert (place / "a.txt").read_text() == "the user's"
    with pytest.raises(Changed):
        tree.write("none.txt", "x", trace_id=T, if_match=digest(b"two"))


@pytest.mark.case(44)
def test_one_creator_wins(tree: Tree, place: Path) -> None:
    start = threading.Barrier(64)

    def create(n: int) -> bool:
        start.wait()
        try:
            tree.write("deep/er/one.txt", f"{n}\n" * 2000, WriteMode.CREATE, trace_id=T)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(64) as pool:
        won = list(pool.map(create, range(64)))
    assert won.count(True) == 1
    assert (place / "deep/er/one.txt").read_text() == f"{won.index(True)}\n" * 2000


def test_concurrent_appends_lose_nothing(tree: Tree, place: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from evercontext.files.file_tree import *\n"
        "from evercontext.files.policy import *\n"
        "from pathlib import Path\n"
        "t = Tree.open(sys.argv[1], gateway_policy(), Path(sys.argv[2]))\n"
        "for n in range(40):\n"
        "    t.write('log.txt', f'{sys.argv[3]}{n}\\n', WriteMode.APPEND, trace_id='t')\n"
        "t.close()"
    )
    args = [sys.executable, "-c", script, str(place), str(tmp_path / "home")]
    children = [subprocess.Popen([*args, name]) for name in "abc"]
    with ThreadPoolExecutor(4) as pool:
        for n in range(40):
            pool.submit(tree.write, "log.txt", f"x{n}\n", WriteMode.APPEND, trace_id=T)
    assert [child.wait() for child in children] == [0, 0, 0]
    lines = (place / "log.txt").read_text().split()
    assert sorted(lines) == sorted(f"{name}{n}" for name in "abcx" for n in range(40))


def test_move_and_delete(tree: Tree, place: Path) -> None:
    tree.write("a.txt", "x", trace_id=T)
    gone, made = tree.move("a.txt", "b/c.txt", trace_id=T)
    assert (gone.path, made.path) == ("a.txt", "b/c.txt")
    assert not (place / "a.txt").exists()
    tree.write("a.txt", "y", trace_id=T)
    with pytest.raises(AlreadyExists):
        tree.move("a.txt", "b/c.txt", trace_id=T)
    tree.delete("b/c.txt", trace_id=T)
    with pytest.raises(NotFound):
        tree.delete("b/c.txt", trace_id=T)
    assert sorted(os.listdir(place)) == ["a.txt", "b"]


@pytest.mark.contract("E24", "N30")
@pytest.mark.case(38, 39)
def test_only_text(tree: Tree, place: Path) -> None:
    for n, raw in enumerate(
        [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", "hé".encode("utf-16"), b"a\0b"]
    ):
        (place / f"{n}.txt").write_bytes(raw)
        with pytest.raises(NotUtf8):
            tree.read(f"{n}.txt")
    for text in ("\ud800", "a\0b"):
        with pytest.raises(NotUtf8):
            tree.write("x.txt", text, trace_id=T)
    assert not (place / "x.txt").exists()


def test_without_a_journal_nothing_is_written(place: Path) -> None:
    tree = Tree.open(place, gateway_policy())
    with pytest.raises(ReadOnlyTree):
        tree.write("a.txt", "x", trace_id=T)
    tree.close()


def test_a_failed_write_leaves_no_directory_behind(tree: Tree, place: Path) -> None:
    with pytest.raises(TooLarge):
        tree.write("a/b/c.txt", "x" * 600_000, trace_id=T)
    (place / "d").mkdir()
    (place / "d" / "f.txt").mkdir()
    with pytest.raises(EverContextError):
        tree.write("d/f.txt", "x", trace_id=T)
    assert os.listdir(place) == ["d"]


@pytest.mark.contract("E9")
def test_listing(tree: Tree, place: Path) -> None:
    for name in ("b.py", "a.md", "c.exe", ".env", ".ec-0123456789abcdef.tmp"):
        (place / name).write_text("12345")
    (place / "sub/deep").mkdir(parents=True)
    (place / "sub/deep/x.py").write_text("")
    (place / "node_modules/big").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "link").symlink_to("sub")
    (place / "out.txt").symlink_to("/etc/passwd")
    found = tree.list(".")
    assert [(e.name, e.is_dir, e.size) for e in found.entries] == [
        ("a.md", False, 5),
        ("b.py", False, 5),
        ("link", True, None),
        ("node_modules", True, None),
        ("out.txt", False, None),
        ("sub", True, None),
    ]
    assert [e.name for e in tree.list(".", extensions=[".py"]).entries if not e.is_dir] == ["b.py"]
    assert tree.list(".", max_items=2).truncated
    assert not tree.list(".", max_items=6).truncated
    deep = [e.name for e in tree.list(".", recursive=True).entries]
    assert "sub/deep/x.py" in deep
    assert "node_modules/big" not in deep
    assert [e.name for e in tree.list("link").entries] == ["deep"]
    with pytest.raises(NotFound):
        tree.list("nowhere")
    with pytest.raises(NotFound):
        tree.list("b.py")
