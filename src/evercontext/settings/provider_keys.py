"""Store keys of providers for ``evercontext setup``.

The system keyring has them where there is one; otherwise a file in the home folder that only its
owner can read. ``keys.json`` says which: a key of the keyring is named there and never written.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from evercontext.errors import ConfigError
from evercontext.files.json_file import read_json, replace_json

KEY_FILE = "keys.json"
SERVICE = "evercontext"
KEYRING = "system keyring"
STORED: dict[str, str] = {"openai": "openai_api_key", "anthropic": "anthropic_api_key"}
"""The setting that each provider's key is for."""
_PATIENCE = {"read": 10.0, "write": 60.0}
"""Seconds: a locked keyring asks its owner for a password, perhaps on another screen."""
_NOT_STORES = ("keyring.backends.fail", "keyring.backends.null")
_KEY = re.compile(r"[!-~]{8,512}")
T = TypeVar("T")
Place = Literal["keyring", "file"]


class KeyringFailed(Exception):
    """The keyring did not do what it was asked for; the message is its reason."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key and the place it came from; no key and a reason where it could not be read."""

    key: str | None
    origin: str
    problem: str = ""


def clean_key(text: str) -> str:
    """Return a pasted key without what surrounds it; raise if it cannot be one."""
    # A file saved by an editor of Windows begins with a byte order mark.
    key = text.replace("\ufeff", "").strip().strip("\"'").removeprefix("Bearer ").strip()
    if not key:
        raise ConfigError("there is no key", fix="Paste the key that the provider shows you once")
    if not _KEY.fullmatch(key):
        raise ConfigError(
            "this is not a key: a key is 8 to 512 letters, digits and signs without spaces",
            fix="Copy it again from the provider's page",
        )
    return key


def masked(key: str) -> str:
    """Return enough of a key to tell it from another, and no more."""
    return f"{key[:3]}…{key[-4:]}" if len(key) >= 20 else "…"


def read_key(home: Path, provider: str) -> StoredKey | None:
    """Return the stored key of a provider; ``None`` if none is stored."""
    entry = read_json(home / KEY_FILE).get(provider)
    if entry is None:
        return None
    if isinstance(entry, dict) and entry.get("place") == "keyring":
        return _from_keyring(home, provider, str(entry.get("backend") or ""))
    key = entry.get("key") if isinstance(entry, dict) else None
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        return StoredKey(None, KEY_FILE, f"{home / KEY_FILE} holds no key for {provider}")
    return StoredKey(key, KEY_FILE)


def _from_keyring(home: Path, provider: str, backend: str) -> StoredKey:
    try:
        ring = _backend(backend)
        key = _in_time(lambda: ring.get_password(SERVICE, _user(home, provider)), "read")
    except KeyringFailed as failure:
        return StoredKey(None, KEYRING, f"the {KEYRING} gave no key for {provider}: {failure}")
    if not key:
        return StoredKey(None, KEYRING, f"the key for {provider} is gone from the {KEYRING}")
    return StoredKey(key, KEYRING)


def store_key(home: Path, provider: str, key: str, place: Place | None = None) -> str:
    """Store a key and return where it is now. Without ``place``: the keyring if it takes it."""
    key = clean_key(key)
    entries = read_json(home / KEY_FILE)
    entry: dict[str, str] = {"place": "file", "key": key}
    origin = str(home / KEY_FILE)
    if place != "file":
        try:
            entry, origin = _to_keyring(home, provider, key), KEYRING
        except KeyringFailed as failure:
            if place == "keyring":
                raise ConfigError(
                    f"the {KEYRING} did not take the key: {failure}",
                    fix="Unlock it and try again, or store it in a file: --store file",
                ) from None
    if entry["place"] == "file":
        _forget_in_keyring(home, provider, entries.get(provider))
    replace_json(home / KEY_FILE, entries | {provider: entry})
    return origin


def _to_keyring(home: Path, provider: str, key: str) -> dict[str, str]:
    ring = _backend("")
    user = _user(home, provider)
    _in_time(lambda: ring.set_password(SERVICE, user, key), "write")
    # Some keyrings take a password and lose it: what cannot be read back is not stored.
    if _in_time(lambda: ring.get_password(SERVICE, user), "read") != key:
        raise KeyringFailed("it does not give back what it was given")
    kind = type(ring)
    return {"place": "keyring", "backend": f"{kind.__module__}.{kind.__qualname__}"}


def remove_key(home: Path, provider: str) -> bool:
    """Remove a stored key from wherever it is; tell whether there was one."""
    entries = read_json(home / KEY_FILE)
    entry = entries.pop(provider, None)
    if entry is None:
        return False
    _forget_in_keyring(home, provider, entry)
    replace_json(home / KEY_FILE, entries)
    return True


def _forget_in_keyring(home: Path, provider: str, entry: Any) -> None:
    if not isinstance(entry, dict) or entry.get("place") != "keyring":
        return
    user = _user(home, provider)
    try:
        ring = _backend(str(entry.get("backend") or ""))
        if _in_time(lambda: ring.get_password(SERVICE, user), "read") is not None:
            _in_time(lambda: ring.delete_password(SERVICE, user), "write")
    except KeyringFailed as failure:
        raise ConfigError(
            f"the key for {provider} is still in the {KEYRING}: {failure}",
            fix=f"Try again where the keyring can be reached, or delete {home / KEY_FILE}",
        ) from None


def exposed(home: Path) -> bool:
    """True if other users of this machine can read the file of keys."""
    try:
        return bool((home / KEY_FILE).stat().st_mode & 0o077)
    except OSError:
        return False


def _user(home: Path, provider: str) -> str:
    # Two home folders of one person are two sets of keys.
    return f"{provider} ({home})"


def _backend(name: str) -> Any:
    """Return the keyring of that class, or the best one that really stores something."""
    try:
        import keyring
        import keyring.core
    except ImportError:
        raise KeyringFailed("the package `keyring` is not installed") from None

    ring: Any = _in_time(
        lambda: keyring.core.load_keyring(name) if name else _best(keyring), "read"
    )
    kind = type(ring).__module__
    # The chainer without a member is what is found where there is no keyring at all.
    empty = kind.endswith(".chainer") and not ring.backends
    if kind.startswith(_NOT_STORES) or empty:
        raise KeyringFailed("there is none on this machine")
    return ring


def _best(keyring: Any) -> Any:
    named = keyring.core.load_env() or keyring.core.load_config()
    ring = named or keyring.get_keyring()
    # Below 1 are those that nobody should use unless they were named: plain files, for example.
    return ring if named or ring.priority >= 1 else keyring.backends.fail.Keyring()


def _in_time(ask: Callable[[], T], what: str) -> T:
    """Ask the keyring, and give up on one that waits for somebody who is not there."""
    answers: list[T] = []
    problems: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        except BaseException as problem:  # noqa: BLE001 - backends of others raise anything
            problems.append(problem)

    thread = threading.Thread(target=work, daemon=True, name="keyring")
    thread.start()
    thread.join(_PATIENCE[what])
    if problems:
        reason = " ".join(str(problems[0]).split())[:200]
        raise KeyringFailed(reason or type(problems[0]).__name__)
    if not answers:
        raise KeyringFailed(f"it did not answer in {_PATIENCE[what]:.0f} s")
    return answers[0]
