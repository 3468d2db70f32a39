from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from evercontext import settings
from evercontext.errors import ConfigError
from evercontext.settings import provider_keys as keys

KEY = "sk-proj-canary0123456789abcdef"


class Locked:
    """A keyring whose owner is not there to unlock it."""

    def get_password(self, service: str, user: str) -> str | None:
        threading.Event().wait(3)
        return None


def test_a_key_is_cleaned_of_what_surrounds_it() -> None:
    for pasted in (KEY, f"  {KEY}\n", f'"{KEY}"', f"Bearer {KEY}"):
        assert keys.clean_key(pasted) == KEY
    for wrong in ("", " ", "short", f"{KEY} {KEY}", "鍵" * 10, "k" * 513):
        with pytest.raises(ConfigError):
            keys.clean_key(wrong)


def test_a_mask_shows_little() -> None:
    assert keys.masked(KEY) == "sk-…cdef"
    assert keys.masked("short-key") == "…"


def test_the_file_is_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.store_key(tmp_path / "home", "openai", KEY)
    finally:
        os.umask(before)
    file = tmp_path / "home" / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert keys.read_key(tmp_path / "home", "openai") == keys.StoredKey(KEY, "keys.json")
    assert [path.name for path in file.parent.iterdir()] == ["keys.json"]


def test_a_project_cannot_bring_a_key(tmp_path: Path) -> None:
    (tmp_path / "evercontext.toml").write_text(f'openai_api_key = "{KEY}"\n')
    found = settings.load({"home": tmp_path / "home"}, environment={}, cwd=tmp_path)
    assert found.openai_api_key is None


@pytest.mark.parametrize("entry", [3, [], {"key": 5}, {"key": "a b"}, {"place": "elsewhere"}, "x"])
def test_a_damaged_entry_is_told_and_not_used(tmp_path: Path, entry: Any) -> None:
    (tmp_path / "keys.json").write_text(json.dumps({"openai": entry}))
    found = settings.load({"home": tmp_path}, environment={}, cwd=tmp_path)
    assert found.openai_api_key is None
    assert "evercontext setup" in found.notices[0]


def test_a_damaged_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    with pytest.raises(ConfigError, match="not valid JSON"):
        settings.load({"home": tmp_path}, environment={}, cwd=tmp_path)


def test_a_keyring_that_waits_for_somebody_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(keys._PATIENCE, "read", 0.05)
    with pytest.raises(keys.KeyringFailed, match="did not answer"):
        keys._in_time(lambda: Locked().get_password("a", "b"), "read")


def test_from_keyring_to_file_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
    assert keys.store_key(tmp_path, "openai", KEY) == "system keyring"
    assert keys.read_key(tmp_path, "openai") == keys.StoredKey(KEY, "system keyring")
    elsewhere = tmp_path / "other"
    assert keys.read_key(elsewhere, "openai") is None
    keys.store_key(tmp_path, "openai", KEY, "file")
    assert keys.read_key(tmp_path, "openai") == keys.StoredKey(KEY, "keys.json")
    import keyring

    assert keyring.get_password(keys.SERVICE, keys._user(tmp_path, "openai")) is None
    assert keys.remove_key(tmp_path, "openai")
    assert not keys.remove_key(tmp_path, "openai")
