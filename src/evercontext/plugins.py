"""Tools and models from other packages, found by entry point.

A package offers ``[project.entry-points."evercontext.tools"]`` or ``"evercontext.models"``. Only
installed packages count, never a repository's files. Looked for when a task begins, not at start.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from evercontext.errors import ConfigError

Kind = Literal["tools", "models"]


def installed(kind: Kind) -> Mapping[str, EntryPoint]:
    """The entry points of one kind by name, not loaded yet."""
    return {point.name: point for point in entry_points(group=f"evercontext.{kind}")}


def load(point: EntryPoint) -> Any:
    """Load one; whatever is wrong with it becomes one line that names it."""
    try:
        return point.load()
    except Exception as problem:
        raise ConfigError(
            f"the plugin {point.name} ({point.value}) cannot be loaded: {problem}",
            fix="Update or uninstall it",
        ) from problem
