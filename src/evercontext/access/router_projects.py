"""Projects of the tool router: which servers belong together, and how tools are looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import ConfigError, NotFound
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

UNASSIGNED = "__unassigned__"
"""What a client says to see only the servers that belong to no project."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class RouterProject:
    """One project; ``path`` binds it to a directory."""

    id: str
    path: str = ""
    optimization: str | None = "hybrid"
    """``None``: tools are not looked for, every one of them is listed."""


class Projects:
    """The ``projects`` table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all = VersionCache(store, self._read_all)

    async def all(self) -> list[RouterProject]:
        """Every project, by name, as of the last commit of any process."""
        return await self._all.get()

    async def _read_all(self) -> list[RouterProject]:
        rows = await self._store.fetch_all("SELECT * FROM projects ORDER BY id")
        return [_project(row) for row in rows]

    async def get(self, id: str) -> RouterProject:
        """One project, or ``NotFound``."""
        row = await self._store.fetch_one("SELECT * FROM projects WHERE id = ?", (id,))
        if row is None:
            raise NotFound(f"there is no project {id[:80]!r}", fix="See: evercontext projects list")
        return _project(row)

    async def put(self, project: RouterProject) -> None:
        """Add a project or replace it."""
        if not _ID.fullmatch(project.id):
            fix = "Use 1 to 64 letters, digits, _ . -"
            raise ConfigError(f"{project.id[:80]!r} cannot be a project's name", fix=fix)
        await self._store.execute(
            "INSERT INTO projects (id, path, optimization) VALUES (?, ?, ?) ON CONFLICT (id)"
            " DO UPDATE SET path = excluded.path, optimization = excluded.optimization",
            (project.id, project.path, project.optimization),
        )

    async def of_directory(self, directory: Path) -> RouterProject | None:
        """The project bound to a directory, or to the nearest one above it."""
        bound = {project.path: project for project in await self.all() if project.path}
        places = (str(place) for place in (directory, *directory.parents))
        return next((bound[place] for place in places if place in bound), None)


def _project(row: Row) -> RouterProject:
    return RouterProject(row["id"], row["path"], row["optimization"])
