from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.settings import Settings
from evercontext.settings.directories import check_root, make_home


def test_a_root_must_be_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    check_root(Settings(root=tmp_path))
    for root in (file, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="is not a directory"):
            check_root(Settings(root=root))


def test_a_wide_root_needs_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    for root in (tmp_path / "user", tmp_path):
        with pytest.raises(ConfigError, match="within reach"):
            check_root(Settings(root=root))
        check_root(Settings(root=root, allow_wide_root=True))


def test_the_home_folder_is_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    make_home(home)
    make_home(home)
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_home_that_cannot_be_made_names_its_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="EC_HOME"):
        make_home(tmp_path / "file" / "home")
