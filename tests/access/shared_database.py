"""A shared database with two users, its owner's address, and that of a role for requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.conninfo

from evercontext.access.users import Users
from evercontext.domain.memory import MemoryType, SourceType
from evercontext.memory.memory_store import MemoryStore
from evercontext.storage.postgres import PostgresStore
from tests import postgres

OWNER, REQUESTS = "ec_owner", "ec_requests"
PROJECT, OTHER_PROJECT = "git:forge.example/team/app", "git:forge.example/other/app"
SECRET = "Bob keeps his passphrase in the blue drawer"
SHARED = "The team of the other project deploys on Fridays"


@dataclass(frozen=True, slots=True)
class SharedDatabase:
    """Addresses and tokens."""

    owner: str
    requests: str
    ann: str
    bob: str

    @contextmanager
    def as_(self, secret: str, address: str | None = None) -> Iterator[Any]:
        """A raw connection of the request role, logged in as a user."""
        with psycopg.connect(address or self.requests, autocommit=True) as link:
            link.execute("SELECT set_config('evercontext.login', %s, false)", [secret])
            yield link


def with_user(url: str, user: str, password: str | None = None) -> str:
    """The same address for another role."""
    more = {"password": password} if password else {}
    return psycopg.conninfo.make_conninfo(url, user=user, **more)


def as_address(url: str, user: str) -> str:
    """The same as an address that settings take."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return f"postgresql://{user}@/{parts['dbname']}?host={parts['host']}"


def empty_database() -> tuple[str, str]:
    """An empty database with pgvector that an ordinary role owns; its address, and the root's."""
    url = postgres.new_database()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    for role in (OWNER, REQUESTS):
        attributes = "LOGIN CREATEROLE" if role == OWNER else "LOGIN"
        known = postgres.run(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'")
        if not known:
            postgres.run(f"CREATE ROLE {role} {attributes}")
    postgres.run(f"ALTER DATABASE {name} OWNER TO {OWNER}")
    postgres.run(f"ALTER SCHEMA public OWNER TO {OWNER}", name)
    postgres.run("CREATE EXTENSION vector", name)
    return as_address(url, OWNER), url


def new_shared_database() -> SharedDatabase:
    """Ann is a member of one project, Bob of another, each with memories and a session."""
    owner, root = empty_database()
    return asyncio.run(_fill(owner, as_address(root, REQUESTS)))


async def _fill(owner: str, requests: str) -> SharedDatabase:
    store = await PostgresStore.open(owner)
    users = Users(store)
    ann, bob = await users.add("ann"), await users.add("bob")
    await users.grant("ann", PROJECT, "member")
    await users.grant("bob", OTHER_PROJECT, "admin")
    await store.grant_role(REQUESTS)
    memories = MemoryStore(store)
    for user, project, text in (
        ("bob", OTHER_PROJECT, SECRET),
        (None, OTHER_PROJECT, SHARED),
        ("bob", None, "Bob prefers tabs everywhere"),
        ("ann", PROJECT, "Ann likes short functions"),
        (None, PROJECT, "The app is released on Mondays"),
    ):
        await memories.save_memory(
            text, MemoryType.LONGTERM, SourceType.INTENT, user_id=user, project=project
        )
    for user in ("ann", "bob"):
        await store.execute(
            "INSERT INTO sessions (id, project_path, model_used, user_id, title)"
            " VALUES (?, '/app', 'm', ?, ?)",
            (f"session-of-{user}", user, f"title of {user}"),
        )
        await store.execute(
            "INSERT INTO messages (session_id, role, content, user_id) VALUES (?, 'user', ?, ?)",
            (f"session-of-{user}", f"{user} says something", user),
        )
        await store.execute(
            "INSERT INTO approvals (id, nonce, trace_id, project_path, tool, question, owner,"
            " asked_at, user_id) VALUES (?, 'n', 't', '/app', 'write_file', '{}', '{}', '', ?)",
            (f"question-of-{user}", user),
        )
        await store.execute(
            "INSERT INTO kept (key, value) VALUES (?, ?)", (f"user:{user}:plan", f"plan of {user}")
        )
    await store.close()
    return SharedDatabase(owner, requests, ann, bob)
