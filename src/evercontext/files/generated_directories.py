"""Name directories that programs generate; walks over a tree skip them."""

from __future__ import annotations

INSTALLED = frozenset({"node_modules", "bower_components", ".venv", "venv"})
"""Installed packages: large, and used from where they are."""
ENVIRONMENTS = INSTALLED | {".tox", ".nox", ".terraform"}
"""Installed programs: read-only to a command that was not approved to install."""
BUILD_RESULTS = frozenset({".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".cache", ".gradle"})
"""Build results and caches that later builds run code from."""
_TOOL_CACHES = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}
)
GENERATED = ENVIRONMENTS | BUILD_RESULTS | _TOOL_CACHES
"""Generated, and often huge."""
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
