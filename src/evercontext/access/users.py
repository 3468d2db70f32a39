"""Users and groups of a shared database, their logins, and their roles in projects.

Whoever owns the database decides about users and groups; an admin of a project about its members.
A token is shown once, when it is made; the database holds its digest.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

from evercontext.domain.principal import user_name
from evercontext.errors import ConfigError, NotFound, UsageError
from evercontext.storage.login import PREFIX, Login, digest_of
from evercontext.storage.store import Queries, Row, Store

ProjectRole = Literal["reader", "member", "admin"]
ROLES: tuple[ProjectRole, ...] = get_args(ProjectRole)
_END_OF_A_USER = (
    "DELETE FROM logins WHERE user_name = ?",
    "DELETE FROM group_users WHERE user_name = ?",
    "DELETE FROM memberships WHERE user_name = ?",
)
_OF_USERS = (
    "DELETE FROM memberships WHERE project = ? AND user_name = ?",
    "INSERT INTO memberships (project, user_name, role) VALUES (?, ?, ?)",
)
_OF_GROUPS = (
    "DELETE FROM memberships WHERE project = ? AND group_name = ?",
    "INSERT INTO memberships (project, group_name, role) VALUES (?, ?, ?)",
)


@runtime_checkable
class KnowsUsers(Protocol):
    """A store that can keep users apart."""

    @property
    def needs_login(self) -> bool:
        """Whether it shows each user their own rows alone."""
        ...

    @property
    def login(self) -> Login | None:
        """The login that statements run under."""
        ...

    async def prepare_users(self) -> None:
        """Make the tables of users and the rules, unless they are there."""
        ...


@dataclass(frozen=True, slots=True)
class Membership:
    """What a user, or everybody of a group, may do in a project."""

    project: str
    role: str
    user: str | None = None
    group: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class User:
    """A user, the groups and projects they are in, and how many tokens are open."""

    name: str
    created_at: str
    logins: int
    groups: tuple[str, ...] = ()
    projects: tuple[Membership, ...] = ()
    removed_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        projects = {held.project: held.role for held in self.projects}
        return {
            "name": self.name,
            "created_at": self.created_at,
            "removed_at": self.removed_at,
            "logins": self.logins,
            "groups": list(self.groups),
            "projects": projects,
        }


class Users:
    """The users of a shared database."""

    def __init__(self, store: Store) -> None:
        if not isinstance(store, KnowsUsers):
            raise ConfigError(
                "one person's file has no users", fix="Name a shared one in EC_DATABASE_URL"
            )
        self._store, self._identity = store, cast("KnowsUsers", store)

    async def add(self, name: str, *, days: int | None = None, restore: bool = False) -> str:
        """Add a user and return the token, which nobody can read again."""
        name = checked_name(name)
        await self._prepare()
        async with self._store.transaction() as writing:
            known = await writing.fetch_one("SELECT removed_at FROM users WHERE name = ?", (name,))
            if known and known["removed_at"] is None:
                fix = f"Make another token for them: evercontext users token {name}"
                raise ConfigError(f"there is a user {name!r} already", fix=fix)
            if known and not restore:
                raise ConfigError(
                    f"there was a user {name!r}, whose memories and sessions are still there",
                    fix="Choose another name, or say --restore if it is the same person",
                )
            await writing.execute(
                "INSERT INTO users (name) VALUES (?) ON CONFLICT (name) DO UPDATE"
                " SET removed_at = NULL, created_at = now()",
                (name,),
            )
            return await _new_login(writing, name, "", days)

    async def new_token(self, name: str, *, label: str = "", days: int | None = None) -> str:
        """Make one more token for a user, and return it."""
        await self._owned()
        async with self._store.transaction("") as writing:
            await _refuse_unknown(writing, name)
            return await _new_login(writing, name, label, days)

    async def log_out(self, name: str) -> int:
        """End every token of a user; return how many were open."""
        await self._owned()
        await _refuse_unknown(self._store, name)
        return await self._store.execute("DELETE FROM logins WHERE user_name = ?", (name,))

    async def remove(self, name: str) -> None:
        """End a user: tokens, groups and memberships; what they kept stays, and nobody sees it."""
        await self._owned()
        async with self._store.transaction() as writing:
            await _refuse_unknown(writing, name)
            for statement in _END_OF_A_USER:
                await writing.execute(statement, (name,))
            await writing.execute("UPDATE users SET removed_at = now() WHERE name = ?", (name,))

    async def all(self) -> list[User]:
        """Return every user by name, removed ones too."""
        if not await self._owned(missing_is_fine=True):
            return []
        rows = await self._store.fetch_all(
            "SELECT u.name, u.created_at::text AS created_at, u.removed_at::text AS removed_at,"
            " (SELECT count(*) FROM logins AS l WHERE l.user_name = u.name"
            "  AND (l.until IS NULL OR l.until > now())) AS logins,"
            " ARRAY(SELECT g.group_name FROM group_users AS g WHERE g.user_name = u.name"
            "  ORDER BY 1) AS groups FROM users AS u ORDER BY u.name"
        )
        members = await self._store.fetch_all("SELECT * FROM memberships ORDER BY project")
        return [_user(row, members) for row in rows]

    async def add_to_group(self, group: str, names: list[str]) -> None:
        """Put users into a group; a new one is made."""
        group = checked_name(group)
        await self._owned()
        async with self._store.transaction() as writing:
            await writing.execute(
                "INSERT INTO groups (name) VALUES (?) ON CONFLICT DO NOTHING", (group,)
            )
            for name in names:
                await _refuse_unknown(writing, name)
                await writing.execute(
                    "INSERT INTO group_users VALUES (?, ?) ON CONFLICT DO NOTHING", (group, name)
                )

    async def remove_from_group(self, group: str, names: list[str]) -> None:
        """Take users out of a group; without names the group ends, and what it was allowed."""
        await self._owned()
        async with self._store.transaction() as writing:
            await _refuse_unknown_group(writing, group)
            if not names:
                await writing.execute("DELETE FROM groups WHERE name = ?", (group,))
            for name in names:
                await writing.execute(
                    "DELETE FROM group_users WHERE group_name = ? AND user_name = ?", (group, name)
                )

    async def groups(self) -> dict[str, list[str]]:
        """Return the groups by name, and who is in them."""
        if not await self._owned(missing_is_fine=True):
            return {}
        rows = await self._store.fetch_all(
            "SELECT g.name, ARRAY(SELECT user_name FROM group_users WHERE group_name = g.name"
            " ORDER BY 1) AS users FROM groups AS g ORDER BY g.name"
        )
        return {str(row["name"]): list(row["users"]) for row in rows}

    async def grant(self, who: str, project: str, role: str | None, *, group: bool = False) -> None:
        """Say what a user or a group may do in a project; ``None``: nothing any more."""
        if role is not None and role not in ROLES:
            raise UsageError(f"not a role: {role[:40]!r}", fix=f"One of: {', '.join(ROLES)}")
        if self._identity.needs_login:
            if group:
                raise UsageError(
                    "groups are the business of the database's owner", fix="Name a user"
                )
            async with self._store.transaction("") as writing:
                await writing.fetch_all("SELECT set_membership(?, ?, ?)", (project, who, role))
            return
        await self._owned()
        remove, insert = _OF_GROUPS if group else _OF_USERS
        async with self._store.transaction() as writing:
            await (_refuse_unknown_group if group else _refuse_unknown)(writing, who)
            await writing.execute(remove, (project, who))
            if role is not None:
                await writing.execute(insert, (project, who, role))

    async def members(self, project: str) -> list[Membership]:
        """Return who may do what in a project."""
        if self._identity.needs_login:
            rows = await self._store.fetch_all("SELECT * FROM project_members(?)", (project,))
        elif await self._owned(missing_is_fine=True):
            rows = await self._store.fetch_all(
                "SELECT * FROM memberships WHERE project = ? ORDER BY user_name, group_name",
                (project,),
            )
        else:
            rows = []
        return [
            Membership(project, row["role"], row["user_name"], row["group_name"]) for row in rows
        ]

    async def _prepare(self) -> None:
        await self._refuse_request_role()
        await self._identity.prepare_users()

    async def _owned(self, *, missing_is_fine: bool = False) -> bool:
        """Return whether there are users; raise unless this is the owner's address."""
        await self._refuse_request_role()
        row = await self._store.fetch_one("SELECT to_regclass('logins') IS NOT NULL AS there")
        if row and row["there"]:
            return True
        if missing_is_fine:
            return False
        raise NotFound("this database has no users yet", fix="Add one: evercontext users add NAME")

    async def _refuse_request_role(self) -> None:
        if self._identity.needs_login:
            raise ConfigError(
                "only the owner of the database can say who its users are",
                fix="Set EC_DATABASE_URL to the address of the role that owns the tables",
            )


def checked_name(name: str) -> str:
    """Return a user's or a group's name in its one spelling."""
    try:
        name = user_name(name)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    if ":" in name:
        raise ConfigError("a user's name holds no colon", fix="Choose another name")
    return name


async def _refuse_unknown(queries: Queries, name: str) -> None:
    row = await queries.fetch_one(
        "SELECT 1 FROM users WHERE name = ? AND removed_at IS NULL", (name,)
    )
    if row is None:
        raise NotFound(f"there is no user {name[:80]!r}", fix="See: evercontext users list")


async def _refuse_unknown_group(queries: Queries, name: str) -> None:
    if await queries.fetch_one("SELECT 1 FROM groups WHERE name = ?", (name,)) is None:
        raise NotFound(f"there is no group {name[:80]!r}", fix="See: evercontext groups list")


async def _new_login(queries: Queries, name: str, label: str, days: int | None) -> str:
    secret = PREFIX + secrets.token_urlsafe(32)
    await queries.execute(
        "INSERT INTO logins (digest, user_name, label, until)"
        " VALUES (?, ?, ?, now() + make_interval(days => ?::integer))",
        (digest_of(secret), name, label, days),
    )
    return secret


def _user(row: Row, memberships: list[Row]) -> User:
    groups = tuple(row["groups"])
    projects = tuple(
        Membership(held["project"], held["role"], held["user_name"], held["group_name"])
        for held in memberships
        if held["user_name"] == row["name"] or held["group_name"] in groups
    )
    return User(
        row["name"], row["created_at"], int(row["logins"]), groups, projects, row["removed_at"]
    )
