"""Users on a shared database: who is connected, and which rows that role may see.

The rules are policies of the database itself (``migrations/identity.sql``). They bind request
roles, which own nothing; whoever owns the tables sees everything, as before there were users.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql

from evercontext.errors import ConfigError, StoreProblem
from evercontext.storage.login import Login
from evercontext.storage.postgres_memory_search import VERSION as MEMORY_SEARCH
from evercontext.storage.postgres_values import translated

_VERSION = f"1/{MEMORY_SEARCH}"
"""What the comment on ``users`` says of rules that this program knows."""
_INSTALLING = 0x45434F49
"""The number of the lock under which one process writes the rules."""
_WRITTEN = (
    "sessions",
    "messages",
    "message_words",
    "memories",
    "approvals",
    "evaluations",
    "kept",
    "permission_rules",
)
_READ = (
    "servers",
    "tool_pins",
    "projects",
    "tokens",
    "traces",
    "schema_migrations",
    "memory_scopes",
    "memory_documents",
    "memory_postings",
    "memory_sessions",
)
_FUNCTIONS = (
    "current_login()",
    "login_projects(text)",
    "login_role(text)",
    "login_prefix()",
    "set_membership(text, text, text)",
    "project_members(text)",
    "login_scopes()",
)
_STATE = """
    SELECT obj_description(to_regclass('users'), 'pg_class') AS version,
        to_regclass('logins') IS NOT NULL AS installed,
        to_regclass('memory_documents') IS NOT NULL AS derived,
        (SELECT pg_has_role(current_user, c.relowner, 'MEMBER') FROM pg_class AS c
            WHERE c.oid = to_regclass('memories')) AS owner,
        r.rolsuper OR r.rolbypassrls AS bypasses
    FROM pg_roles AS r WHERE r.rolname = current_user
"""
_SCHEMAS = """
    SELECT current_schema() AS ours, coalesce((SELECT n.nspname FROM pg_extension AS e
        JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'), 'pg_catalog')
        AS vectors
"""
Link = psycopg.AsyncConnection[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RoleState:
    """What a database knows of users, and what the connected role is to it."""

    installed: bool
    """There are users: requests need a login."""
    owner: bool
    """The role owns the tables, or there are none yet."""
    current: bool
    """The rules are those that this program knows."""
    derived: bool

    @property
    def restricted(self) -> bool:
        """Whether the role sees only what its login may."""
        return self.installed and not self.owner


async def read_state(link: Link) -> RoleState:
    """Say what the connected role is; nothing is changed."""
    with translated():
        row = await (await link.execute(_STATE)).fetchone() or {}
    owner = row.get("owner")
    state = RoleState(
        installed=bool(row.get("installed")),
        owner=owner is None or bool(owner),
        current=row.get("version") == _VERSION,
        derived=bool(row.get("derived")),
    )
    if state.restricted and row.get("bypasses"):
        raise ConfigError(
            "the role of EC_DATABASE_URL may bypass row-level security, so nothing is kept apart",
            fix="Make another: evercontext db grant ROLE",
        )
    return state


async def user_of(link: Link, secret: str) -> Login | None:
    """Return the login behind a secret, or ``None`` if it is nobody's."""
    with translated():
        # Not text that a server could hold: no token of ours.
        if not secret.isascii() or "\0" in secret:
            return None
        await link.execute("SELECT set_config('evercontext.login', $1, false)", [secret])
        row = await (await link.execute("SELECT current_login() AS name")).fetchone()
    return Login(str(row["name"]), secret) if row and row["name"] else None


async def install(link: Link) -> None:
    """Write the tables of users and the rules, or bring them up to date; as the owner."""
    with translated():
        async with link.transaction():
            await link.execute("SELECT pg_advisory_xact_lock($1)", [_INSTALLING])
            state = await read_state(link)
            if state.installed and state.current:
                return
            if not state.owner:
                raise StoreProblem(
                    "only the owner of the database can say who its users are",
                    fix="Use the address of the role that owns the tables",
                )
            if not state.derived:
                raise ConfigError(
                    "users need the extension pgvector in the database",
                    fix="Let the server's owner run CREATE EXTENSION vector, then start again",
                )
            await link.execute(_script())
            await _fix_search_paths(link)
            for role in await _roles(link):
                await _grant(link, role)
            await link.execute(f"COMMENT ON TABLE users IS '{_VERSION}'".encode())


async def refresh(link: Link) -> None:
    """Write the rules again where there are users and something was built anew."""
    state = await read_state(link)
    if state.installed and state.owner and not state.current:
        await install(link)


async def grant(link: Link, role: str) -> str | None:
    """Let requests run under a role; return the password of one that was made now."""
    with translated():
        row = await (
            await link.execute("SELECT * FROM pg_roles WHERE rolname = $1", [role])
        ).fetchone()
        password = None
        if row is None:
            password = secrets.token_urlsafe(24)
            await _make(link, role, password)
        elif row["rolsuper"] or row["rolbypassrls"] or row["rolcreaterole"]:
            raise ConfigError(
                f"the role {role!r} may do more than requests should",
                fix="Name a new role, or take SUPERUSER, BYPASSRLS and CREATEROLE from it",
            )
        held = await (await link.execute(_HOLDS, [role])).fetchone()
        if held and held["holds"]:
            raise ConfigError(
                f"the role {role!r} owns the tables, or belongs to a role that does",
                fix="Name another role",
            )
        async with link.transaction():
            await link.execute(
                "INSERT INTO request_roles (name) VALUES ($1) ON CONFLICT DO NOTHING", [role]
            )
            await _grant(link, role)
    return password


_HOLDS = """
    SELECT bool_or(pg_has_role($1, c.relowner, 'MEMBER')) AS holds FROM pg_class AS c
    WHERE c.oid IN (to_regclass('memories'), to_regclass('users'))
"""


async def _make(link: Link, role: str, password: str) -> None:
    create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} NOSUPERUSER NOBYPASSRLS NOCREATEROLE")
    try:
        await link.execute(create.format(sql.Identifier(role), sql.Literal(password)))
    except psycopg.errors.InsufficientPrivilege:
        raise ConfigError(
            f"this role may not make the role {role!r}",
            fix=f"Let the server's owner run CREATE ROLE \"{role}\" LOGIN PASSWORD '…', then again",
        ) from None


async def _grant(link: Link, role: str) -> None:
    """Give a role what requests need, and take from everybody what would let them plant things."""
    name = sql.Identifier(role)
    schema = sql.Identifier((await _schemas(link))["ours"])
    for function in _FUNCTIONS:
        callable_ = sql.SQL(function)
        await link.execute(sql.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(callable_))
        await link.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(callable_, name))
    await link.execute(sql.SQL("REVOKE CREATE ON SCHEMA {} FROM PUBLIC").format(schema))
    await link.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, name))
    row = await (await link.execute("SELECT current_database() AS name")).fetchone() or {}
    database = sql.Identifier(row["name"])
    # A temporary table or function would be found before ours by whoever has the connection next.
    await link.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    for rights, tables in (
        ("SELECT, INSERT, UPDATE, DELETE", _WRITTEN),
        ("SELECT", _READ),
    ):
        listed = sql.SQL(", ").join(map(sql.Identifier, tables))
        give = sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), listed, name)
        await link.execute(give)


async def _fix_search_paths(link: Link) -> None:
    """Let functions of the owner look for tables only where the owner has put them."""
    schemas = await _schemas(link)
    path = sql.SQL(", ").join(
        sql.Identifier(name) for name in dict.fromkeys((schemas["ours"], schemas["vectors"]))
    )
    for function in (*_FUNCTIONS, "follow_memories()"):
        await link.execute(
            sql.SQL("ALTER FUNCTION {} SET search_path = {}, pg_temp").format(
                sql.SQL(function), path
            )
        )


async def _schemas(link: Link) -> dict[str, Any]:
    return await (await link.execute(_SCHEMAS)).fetchone() or {}


async def _roles(link: Link) -> list[str]:
    rows = await (
        await link.execute(
            "SELECT name FROM request_roles WHERE name IN (SELECT rolname FROM pg_roles)"
        )
    ).fetchall()
    return [row["name"] for row in rows]


@cache
def _script() -> bytes:
    return files("evercontext.storage").joinpath("migrations/identity.sql").read_bytes()
