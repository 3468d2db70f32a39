"""The gateway's rows about names, places, kinds and sizes, at the library that every door uses."""

from __future__ import annotations

import os
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

from evercontext.errors import (
    AlreadyExists,
    EverContextError,
    ExtensionRefused,
    NotFound,
    NotUtf8,
    PathEscape,
    PathRefused,
    ProtectedPath,
    TooLarge,
)
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.policy import FilePolicy
from tests.hostile.conftest import SECRET

T = "22222222-2222-4222-8222-222222222222"
BAD_PATH = (PathEscape, PathRefused)


def refused(tree: Tree, path: str, *kinds: type[EverContextError]) -> EverContextError:
    """Read, write in every mode, delete and move: all say the same, and nothing of the file."""
    with pytest.raises(kinds) as reading:
        tree.read(path)
    for mode in WriteMode:
        with pytest.raises((*kinds, AlreadyExists)):
            tree.write(path, "x", mode, trace_id=T)
    with pytest.raises(kinds):
        tree.delete(path, trace_id=T)
    with pytest.raises(EverContextError):
        tree.move(path, "free.txt", trace_id=T)
    assert SECRET not in str(reading.value)
    return reading.value


@pytest.mark.contract("E21", "E43")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../root-evil/s.txt", marks=pytest.mark.case(1, 7)),
        pytest.param("a/../../root-evil/s.txt", marks=pytest.mark.case(2)),
        pytest.param("/etc/passwd", marks=pytest.mark.case(3)),
        pytest.param("//etc/passwd", marks=pytest.mark.case(3)),
        pytest.param("~/x.txt", marks=pytest.mark.case(4)),
        pytest.param("~root/x.txt", marks=pytest.mark.case(4)),
        pytest.param("C:/x.txt", marks=pytest.mark.case(6)),
        pytest.param("/proc/self/environ", marks=pytest.mark.case(17)),
        pytest.param("..", marks=pytest.mark.case(1)),
    ],
)
def test_escapes(tree: Tree, path: str) -> None:
    assert refused(tree, path, PathEscape).message == "path escapes root"
    with pytest.raises(PathEscape):
        tree.list(path)


@pytest.mark.parametrize(
    "path",
    [
        *(pytest.param(p, marks=pytest.mark.case(5)) for p in ("..\\x.txt", "a\\..\\..\\x.txt")),
        pytest.param("\\\\srv\\x.txt", marks=pytest.mark.case(5)),
        pytest.param("keep.txt:ads.txt", marks=pytest.mark.case(6)),
        pytest.param("a\0.txt", marks=pytest.mark.case(8)),
        *(pytest.param(f"a{c}.txt", marks=pytest.mark.case(9)) for c in "\n\r\x1b\x7f\x85"),
        *(
            pytest.param(f"a{c}txt.txt", marks=pytest.mark.case(10))
            for c in "\u202e\u200b\ufeff\u2028"
        ),
        pytest.param("e\u0301.txt", marks=pytest.mark.case(11)),
        *(pytest.param(p, marks=pytest.mark.case(24)) for p in ("", ".", "./", "./.")),
        pytest.param("a" * 252 + ".txt", marks=pytest.mark.case(25)),
        pytest.param("あ" * 90 + ".txt", marks=pytest.mark.case(25)),
        pytest.param("d/" * 600 + "x.txt", marks=pytest.mark.case(25)),
        pytest.param("x/" * 3000 + "x.txt", marks=pytest.mark.case(25)),
        *(
            pytest.param(p, marks=pytest.mark.case(26))
            for p in (
                "CON.txt",
                "nul.py",
                "AUX.json",
                "com1.md",
                "a. /x.txt",
                "a./x.txt",
                "con/x.txt",
            )
        ),
        pytest.param("\ud800.txt", marks=pytest.mark.case(39)),
        pytest.param("．．/x.txt", marks=pytest.mark.case(5)),
        pytest.param(".ec-0123456789abcdef.tmp", marks=pytest.mark.case(51)),
    ],
)
def test_names_refused_everywhere(tree: Tree, path: str) -> None:
    refused(tree, path, PathRefused)


@pytest.mark.case(11)
def test_the_reason_is_named(tree: Tree) -> None:
    assert refused(tree, "e\u0301.txt", PathRefused).message == "path not NFC"


@pytest.mark.case(3, 24)
def test_only_slashes(tree: Tree) -> None:
    refused(tree, "///", *BAD_PATH)
    assert tree.list(".").entries == ()


@pytest.mark.case(7)
def test_prefix_sibling(tree: Tree, outside: Path) -> None:
    assert (outside / "s.txt").read_text() == SECRET
    refused(tree, "../root-evil/s.txt", PathEscape)


@pytest.mark.case(13)
def test_link_to_a_file_outside(tree: Tree, place: Path, outside: Path) -> None:
    (place / "l.txt").symlink_to(outside / "s.txt")
    (place / "r.txt").symlink_to("../root-evil/s.txt")
    for path in ("l.txt", "r.txt"):
        assert refused(tree, path, PathRefused).message == "symlink not allowed"


@pytest.mark.case(14)
def test_link_to_a_directory_outside(tree: Tree, place: Path, outside: Path) -> None:
    (place / "d").symlink_to(outside)
    refused(tree, "d/s.txt", PathRefused)
    refused(tree, "d/new.txt", PathRefused)
    with pytest.raises(PathRefused):
        tree.list("d")
    assert os.listdir(outside) == ["s.txt"]


@pytest.mark.case(15)
def test_dangling_link(tree: Tree, place: Path, outside: Path) -> None:
    (place / "n.txt").symlink_to(outside / "new.txt")
    with pytest.raises(PathRefused, match="symlink not allowed"):
        tree.write("n.txt", "x", WriteMode.OVERWRITE, trace_id=T)
    with pytest.raises(AlreadyExists):
        tree.write("n.txt", "x", WriteMode.CREATE, trace_id=T)
    assert not (outside / "new.txt").exists()
    assert (place / "n.txt").is_symlink()


@pytest.mark.case(16)
def test_link_loop(tree: Tree, place: Path) -> None:
    (place / "a.txt").symlink_to("b.txt")
    (place / "b.txt").symlink_to("a.txt")
    (place / "d").symlink_to("d")
    for path in ("a.txt", "d/x.txt"):
        started = time.process_time()
        refused(tree, path, PathRefused)
        assert time.process_time() - started < 0.5


@pytest.mark.case(17)
def test_magic_links(tree: Tree, place: Path) -> None:
    (place / "root").symlink_to("/proc/self/root")
    (place / "cwd").symlink_to("/proc/self/cwd")
    for path in ("root/etc/x.txt", "cwd/x.txt"):
        refused(tree, path, PathRefused)


@pytest.mark.case(20)
def test_hard_link(tree: Tree, place: Path, outside: Path) -> None:
    os.link(outside / "s.txt", place / "h.txt")
    assert refused(tree, "h.txt", ProtectedPath).message == "hard link"
    open_door = tree.under(FilePolicy(hard_links=True))
    assert open_door.read("h.txt").content == SECRET
    os.unlink(place / "h.txt")


@pytest.mark.case(22)
def test_special_files(tree: Tree, place: Path) -> None:
    os.mkfifo(place / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(place, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/sock.txt")
        os.close(here)
    paths = ["fifo.txt", "sock.txt"]
    if os.geteuid() == 0:
        os.mknod(place / "null.txt", 0o20666, os.makedev(1, 3))
        paths.append("null.txt")
    for path in paths:
        refused(tree, path, PathRefused)


@pytest.mark.case(23)
def test_directories_and_files_mixed_up(tree: Tree, place: Path) -> None:
    (place / "d.txt").mkdir()
    (place / "f.txt").write_text("x")
    refused(tree, "d.txt", PathRefused)
    with pytest.raises(NotFound):
        tree.read("f.txt/x.txt")
    with pytest.raises(NotFound):
        tree.write("f.txt/x.txt", "x", trace_id=T)
    with pytest.raises(NotFound):
        tree.list("f.txt")
    for path in ("f.txt/", "d.txt/"):
        refused(tree, path, ExtensionRefused)
    with pytest.raises(PathRefused):
        tree.under(FilePolicy()).read("f.txt/")


@pytest.mark.case(27, 28)
@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/pre-commit.py", ".GIT/hooks/x.py", "a/.git/config.txt", "．git/x.txt"),
        *(".ｇｉｔ/x.txt", "git~1/x.txt", ".gitmodules", ".env", ".env.txt", ".ENV.local"),
        *(".vscode/tasks.json", ".mcp.json", ".evercontext/x.json", "evercontext.toml", ".bashrc"),
        *(".zshrc", ".profile", ".bash_profile", ".claude/settings.json", ".ssh/x.txt", "id_rsa"),
        *("server.pem", ".npmrc", ".netrc", ".cursor/mcp.json", ".idea/x.json", ".envrc"),
    ],
)
def test_protected_places(tree: Tree, place: Path, path: str) -> None:
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text(SECRET)
    refused(tree, path, ProtectedPath)
    assert (place / path).read_text() == SECRET


@pytest.mark.case(29)
@pytest.mark.contract("E22")
@pytest.mark.parametrize("path", ["x.exe", "x", "x.PY", "x.py.exe", "x.py/", ".py", "x."])
def test_extensions(tree: Tree, path: str) -> None:
    if path == "x.":
        refused(tree, path, PathRefused)
        return
    assert refused(tree, path, ExtensionRefused).message == "extension not allowed"


@pytest.mark.contract("E23")
@pytest.mark.case(30, 31)
def test_the_size_limit_to_the_byte(tree: Tree, place: Path) -> None:
    full = "x" * 524_288
    tree.write("full.txt", full, trace_id=T)
    assert tree.read("full.txt").content == full
    for content in (full + "x", "あ" * 174_763):
        for path in ("full.txt", "new.txt"):
            with pytest.raises(TooLarge):
                tree.write(path, content, trace_id=T)
    assert (place / "full.txt").read_text() == full
    (place / "full.txt").write_text(full + "x")
    with pytest.raises(TooLarge):
        tree.read("full.txt")


@pytest.mark.case(32)
def test_append_over_the_limit(tree: Tree, place: Path) -> None:
    tree.write("a.txt", "x" * 524_280, trace_id=T)
    with pytest.raises(TooLarge):
        tree.write("a.txt", "y" * 9, WriteMode.APPEND, trace_id=T)
    assert (place / "a.txt").read_bytes() == b"x" * 524_280


@pytest.mark.case(33)
def test_a_file_that_claims_to_be_empty(place: Path) -> None:
    """Files of /proc say size 0 and then deliver: the same as growing after fstat."""
    limit = 4096
    tree = Tree.open("/proc/self", FilePolicy(max_bytes=limit, hard_links=True))
    assert os.stat("/proc/self/smaps").st_size == 0
    tracemalloc.start()
    with pytest.raises(TooLarge):
        tree.read("smaps")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tree.close()
    assert peak < limit + 65_536


@pytest.mark.case(40)
@pytest.mark.contract("N30")
def test_bytes_survive_a_round_trip(tree: Tree, place: Path) -> None:
    raw = "\ufeffa\r\nb\rc\n\x0c\x1b[0m\tend".encode()
    (place / "a.txt").write_bytes(raw)
    tree.write("b.txt", tree.read("a.txt").content, trace_id=T)
    tree.write("a.txt", tree.read("a.txt").content, trace_id=T)
    assert (place / "a.txt").read_bytes() == (place / "b.txt").read_bytes() == raw


@pytest.mark.case(38)
def test_only_utf8(tree: Tree, place: Path) -> None:
    for raw in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", "text".encode("utf-16")):
        (place / "a.txt").write_bytes(raw)
        with pytest.raises(NotUtf8):
            tree.read("a.txt")
        with pytest.raises(NotUtf8):
            tree.write("a.txt", "b", WriteMode.APPEND, trace_id=T)
        assert (place / "a.txt").read_bytes() == raw


@pytest.mark.slow
@pytest.mark.case(65)
def test_a_huge_directory_with_odd_names(tree: Tree, place: Path) -> None:
    (place / "big").mkdir()
    here = os.open(place / "big", os.O_RDONLY)
    for n in range(100_000):
        os.mknod(f"{n:06d}.txt", dir_fd=here)
    os.close(here)
    for raw in (b"\xff\xfe.txt", b"a\nb\x1b.txt"):
        os.mknod(os.path.join(os.fsencode(place), raw))
    started = time.process_time()
    found = tree.list("big", max_items=50)
    assert time.process_time() - started < 1
    assert (len(found.entries), found.truncated) == (50, True)
    odd = {e.name for e in tree.list(".").entries if not e.is_dir}
    assert odd == {"\\xff\\xfe.txt", "a\\nb\\x1b.txt"}
