"""Find tools and models of other packages by entry point.

A package offers ``[project.entry-points."evercontext.tools"]``: a list of tools; or
``"evercontext.models"``: its name is a provider, as in ``-m NAME:MODEL``, and its value a function
that takes the model's name and the settings and returns a ``Model``; or ``"evercontext.search"``:
its name is what a project's ``optimization`` may be, and its value a function that takes the
settings and returns a ``SearchProvider``. Only installed packages
count, never a repository's files. Looked for when a task begins, not at start.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from evercontext.errors import ConfigError

Kind = Literal["tools", "models", "search"]


def installed(kind: Kind) -> Mapping[str, EntryPoint]:
    """The entry points of one kind by name, not loaded yet; looked for once."""
    return _on_path(kind, tuple(sys.path))


@lru_cache(maxsize=4)
def _on_path(kind: Kind, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    # The names of all that is installed are read for it: with many packages that takes a while.
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
