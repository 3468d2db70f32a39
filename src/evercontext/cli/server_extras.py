"""What a tool server is given besides its command, shown before it is added."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from evercontext.cli.terminal import one_line
from evercontext.events.redaction import names_secret, redactor

if TYPE_CHECKING:
    from evercontext.catalog.server_table import ServerConfig


def extras_of(config: ServerConfig) -> str:
    """What else a server is given: it can decide what runs, and which of your secrets it gets."""
    parts = {
        "env": _values(config.env, [name for name in config.env if not names_secret(name)]),
        "headers": _values(config.headers, []),
        "in": config.cwd,
    }
    return "".join(f"  {name}: {one_line(text)}" for name, text in parts.items() if text)


def _values(values: Mapping[str, str], plain: Collection[str]) -> str:
    """Names with their values; what may be a credential only if it is taken from ``${NAME}``."""
    masked = redactor(None).masked
    return ", ".join(
        f"{name}={masked(value)}" if name in plain or "${" in value else name
        for name, value in sorted(values.items())
    )
