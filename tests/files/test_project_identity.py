from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evercontext.files.project_identity import address_of, identity_of
from evercontext.testing import tiny_repository

URL = "git@git.example:team/app.git"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tiny_repository(tmp_path / "app", {"sub/a.py": "x = 1\n"})
    git(place, "remote", "add", "origin", URL)
    return place


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "git.example:team/app",
        "ssh://git@git.example:2222/team/app.git",
        "https://git.example/team/app.git/",
        "https://ana:hunter2@Git.Example//team/app",
        "git://git.example/team%2Fapp.git",
        " https://git.example:8443/team/app ",
    ],
)
def test_every_way_to_write_an_address_is_one(tmp_path: Path, url: str) -> None:
    assert address_of(url, tmp_path) == "git.example/team/app"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:3000/team/app", "localhost:3000/team/app"),
        ("ssh://git@127.0.0.1:2222/team/app.git", "127.0.0.1:2222/team/app"),
        ("http://[::1]:8080/team/app", "::1:8080/team/app"),
        ("http://forge.localhost:81/team/app", "forge.localhost:81/team/app"),
        ("http://localhost/team/app", "localhost/team/app"),
        ("https://localhost.example:8443/team/app", "localhost.example/team/app"),
        ("https://git.example:99999999/team/app", ""),
    ],
)
def test_a_port_counts_where_every_port_is_another_server(
    tmp_path: Path, url: str, expected: str
) -> None:
    """F4: two tunnels of one machine are two projects; SSH and HTTPS of one forge are one."""
    assert address_of(url, tmp_path) == expected


def test_a_folder_is_an_address_too(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    known = {
        address_of(url, tmp_path / "top") for url in ("../bare.git", f"file://{tmp_path}/bare")
    }
    assert known == {f"file{os.path.realpath(tmp_path)}/bare"}


@pytest.mark.parametrize("url", ["", "https://", "https://[::1", "ssh://git.example", "host:"])
def test_what_is_no_address_is_none(tmp_path: Path, url: str) -> None:
    assert not address_of(url, tmp_path) or address_of(url, tmp_path).startswith("file")


def test_clones_work_trees_and_links_are_one_project(repository: Path, tmp_path: Path) -> None:
    """F4"""
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "link").symlink_to(repository)
    places = (repository, tmp_path / "tree", tmp_path / "link")
    assert {identity_of(place) for place in places} == {"git:git.example/team/app"}
    assert identity_of(repository / "sub") == "git:git.example/team/app//sub"


def test_without_a_remote_it_is_the_path(tmp_path: Path) -> None:
    bare = tiny_repository(tmp_path / "alone", {"a": "b"})
    assert identity_of(bare) == os.path.realpath(bare)
    assert identity_of(tmp_path) == os.path.realpath(tmp_path)
    # A repository without a remote is no part of the one around it.
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", URL)
    assert identity_of(bare) == os.path.realpath(bare)


def test_another_remote_counts_where_there_is_no_origin(repository: Path) -> None:
    git(repository, "remote", "rename", "origin", "upstream")
    git(repository, "remote", "add", "fork", "https://git.example/ana/app")
    assert identity_of(repository) == "git:git.example/ana/app"


def test_settings_that_nobody_can_read_are_none(repository: Path) -> None:
    config = repository / ".git" / "config"
    config.unlink()
    os.mkfifo(config)
    assert identity_of(repository) == os.path.realpath(repository)
    config.unlink()
    config.write_text(f'[remote "origin"]\n\turl = https://git.example/{"x" * 600}\n')
    assert identity_of(repository) == os.path.realpath(repository)
    config.write_text('[remote "origin"]\n\turl = "https://git.example/a\\nb"\n')
    assert identity_of(repository) == os.path.realpath(repository)
