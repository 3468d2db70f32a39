"""Read and replace small JSON files of ours: bounded, plain files only, private to their owner."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evercontext.errors import ConfigError

MOST_BYTES = 1 << 24
# A pipe or a device would keep a reader waiting for ever.
_PLAIN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file that a person may have edited; an empty one if there is none.

    ConfigError says what is wrong with the file.
    """
    try:
        values = json.loads(_read_plain_file(path))
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise ConfigError(
            f"cannot read {path}: {problem.strerror}", fix="Check its permissions, or set EC_HOME"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise ConfigError(
            f"{path} is not valid JSON: {problem}",
            fix="Correct the file, or move it away to start afresh",
        ) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold one JSON object", fix="Correct the file")
    return values


def read_json_leniently(path: Path) -> dict[str, Any] | None:
    """Return the object in a file that a program wrote, or None if there is none to be read."""
    try:
        values = json.loads(_read_plain_file(path))
    except (OSError, ValueError, RecursionError, ConfigError):
        return None
    return values if isinstance(values, dict) else None


def replace_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    # Reading settings, which every command does, needs nothing that writes.
    from evercontext.files.atomic_write import replace_file

    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, text.encode())
    except OSError as problem:
        raise ConfigError(
            f"cannot write {path}: {problem.strerror}", fix="Check its folder, or set EC_HOME"
        ) from None


def _read_plain_file(path: Path) -> bytes:
    descriptor = os.open(path, _PLAIN)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(f"{path} is not a plain file", fix="Move it away, or set EC_HOME")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} is larger than {MOST_BYTES} bytes", fix="Move it away")
    return content
