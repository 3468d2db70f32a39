"""Store projects of the tool router: their servers, and how their tools are searched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import ConfigError, NotFound
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

UNASSIGNED = "__unassigned__"
"""What a client says to see only the servers that belong to no project."""
OWN_SEARCHES = ("hybrid", "bm25", "cloud")
"""Ways of looking for tools that are ours; every other name is an installed package's."""
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
            "INSERT INTO projects (id, path, optimization, provider) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET path = excluded.path,"
            " optimization = excluded.optimization, provider = excluded.provider",
            (project.id, project.path, *_columns(project.optimization)),
        )

    async def remove(self, id: str) -> None:
        """Forget a project that no server belongs to; raise ``ConfigError`` if some do."""
        await self.get(id)
        rows = await self._store.fetch_all(
            "SELECT id FROM servers WHERE project = ? ORDER BY id", (id,)
        )
        if rows:
            names = ", ".join(row["id"] for row in rows)
            fix = "Remove them first: evercontext servers remove NAME"
            raise ConfigError(f"project {id} still has servers: {names}", fix=fix)
        await self._store.execute("DELETE FROM projects WHERE id = ?", (id,))

    async def of_directory(self, directory: Path) -> RouterProject | None:
        """The project bound to a directory, or to the nearest one above it."""
        bound = {project.path: project for project in await self.all() if project.path}
        places = (str(place) for place in (directory, *directory.parents))
        return next((bound[place] for place in places if place in bound), None)


def _columns(optimization: str | None) -> tuple[str | None, str | None]:
    """Return the columns ``optimization`` and ``provider``; the first has our own names only."""
    if optimization is None or optimization in OWN_SEARCHES:
        return optimization, None
    return OWN_SEARCHES[0], optimization


def _project(row: Row) -> RouterProject:
    return RouterProject(row["id"], row["path"], row["provider"] or row["optimization"])
