"""The small JSON files of the home folder: read whole, replaced whole, private to their owner."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evercontext.errors import ConfigError


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one if there is no file."""
    try:
        if path.exists() and not path.is_file():
            # A pipe would keep us waiting for ever.
            raise ConfigError(f"{path} is not a plain file", fix="Move it away, or set EC_HOME")
        values = json.loads(path.read_bytes())
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


def replace_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made with mode 0600: the file is never open to others, not even for a moment.
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as problem:
        raise _unwritable(path, problem) from None
    fresh = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as problem:
        raise _unwritable(path, problem) from None
    finally:
        fresh.unlink(missing_ok=True)


def _unwritable(path: Path, problem: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write {path}: {problem.strerror}", fix="Check its folder, or set EC_HOME"
    )
