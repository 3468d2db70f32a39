"""Run a vendor's program in a private home; copy only a refreshed login back.

The program gets copies of its login files and a configuration that we write. Whatever else it
leaves there (sessions, histories, logs) goes when it ends. A login that it refreshed is returned to
the user's own folder, also when we were killed meanwhile: the next run settles what was left.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently
from evercontext.files.small_files import small_bytes

LARGEST = 1024 * 1024
"""Bytes of a login file: nobody's is larger."""
_ORIGIN = "origin.json"


@dataclass(frozen=True, slots=True)
class PrivateHome:
    """The folders of one run."""

    root: Path
    """All that the program may write."""
    settings: Path
    """Inside the root: where the program keeps its login and its configuration."""
    work: Path
    """Inside the root and empty: the working directory."""


@contextlib.contextmanager
def private_home(
    state: Path, user: Path, *, copied: Sequence[str], returned: Sequence[str]
) -> Iterator[PrivateHome]:
    """Yield a home for one run of a program whose files lie in ``user``, such as ``~/.codex``.

    Files named in ``copied`` are there; those in ``returned`` too, and go back if they changed.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as stack:
        with _locked(state):
            _settle_leftovers(state)
            folder = Path(tempfile.mkdtemp(prefix="run-", dir=state))
            stack.enter_context(_locked(folder))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        home = _furnish(folder, user, (*copied, *returned))
        _write_origin(folder, user, returned)
        # A login that cannot be returned is the user's loss, not a reason to lose the answer too.
        stack.callback(_settle_quietly, folder)
        yield home


def _furnish(folder: Path, user: Path, names: Sequence[str]) -> PrivateHome:
    root = folder / "home"
    home = PrivateHome(root, root / user.name, root / "work")
    for place in (home.root, home.settings, home.work):
        place.mkdir(mode=0o700)
    for name in names:
        content = read_small(user / name)
        if content is not None:
            replace_file(home.settings / name, content)
    return home


def _write_origin(folder: Path, user: Path, returned: Sequence[str]) -> None:
    """Write down what came from where, for whoever settles this run."""
    before = {name: _digest(read_small(user / name)) for name in returned}
    replace_file(folder / _ORIGIN, json.dumps({"user": str(user), "before": before}).encode())


def _settle_leftovers(state: Path) -> None:
    """Finish runs that were killed: return their logins, remove their files."""
    for folder in state.glob("run-*"):
        with contextlib.suppress(OSError), _locked(folder, wait=False):
            _settle_quietly(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _settle_quietly(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        origin = read_json_leniently(folder / _ORIGIN) or {}
        user = Path(origin["user"])
        for name, before in origin["before"].items():
            _return(folder / "home" / user.name / name, user / name, before)


def _return(changed: Path, original: Path, before: str | None) -> None:
    """Replace a login by its refreshed copy, unless something newer is there."""
    content = None if changed.is_symlink() else small_bytes(changed.parent, changed.name, LARGEST)
    present = read_small(original)
    if before is None or content is None or present is None or _digest(content) == before:
        return
    if not is_refreshed(content, present, untouched=_digest(present) == before):
        return
    target = original.resolve()
    replace_file(target, content, mode=stat.S_IMODE(target.stat().st_mode))


def is_refreshed(content: bytes, present: bytes, *, untouched: bool) -> bool:
    """True if ``content`` is the login ``present`` with newer tokens, of the same account.

    ``untouched``: nobody wrote ``present`` since it was copied; else the later refresh wins.
    """
    new, old = json.loads(content), json.loads(present)
    if not isinstance(new, dict) or not isinstance(old, dict) or not set(old) <= set(new):
        return False
    if _account(new) != _account(old):
        return False
    return untouched or _moment(new) > _moment(old)


def _account(login: dict[str, Any]) -> tuple[object, ...]:
    tokens = login.get("tokens")
    account = tokens.get("account_id") if isinstance(tokens, dict) else None
    return account, login.get("OPENAI_API_KEY"), login.get("auth_mode")


def _moment(login: dict[str, Any]) -> tuple[str, float]:
    """When the tokens were made (Codex) or end (Gemini)."""
    return str(login.get("last_refresh") or ""), float(login.get("expiry_date") or 0)


@contextlib.contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a folder; a process that dies lets it go."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def read_small(path: Path) -> bytes | None:
    """Return the content of a file of the user's that may lie behind a link; None if it is none."""
    real = path.resolve()
    return small_bytes(real.parent, real.name, LARGEST)


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
