"""Users, groups and roles: what the database lets a login see and change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext.access.acting_user import acting_user
from evercontext.access.approval_rules import parse
from evercontext.access.permissions import StoredRules
from evercontext.access.users import Users
from evercontext.domain.memory import MemoryType, RetrievalOptions, SourceType
from evercontext.errors import (
    ConfigError,
    NotFound,
    StoreForbidden,
    Unauthorized,
    UsageError,
)
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.server.login_check import LoginCheck
from evercontext.settings import load
from evercontext.storage.key_value import get_value, put_value, values_below
from evercontext.storage.login import Login, logged_in
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store
from tests import postgres
from tests.access.shared_database import (
    OTHER_PROJECT,
    OWNER,
    PROJECT,
    SHARED,
    SharedDatabase,
    as_address,
    new_shared_database,
)


@pytest.fixture(scope="module")
def database() -> SharedDatabase:
    return new_shared_database()


@asynccontextmanager
async def opened(url: str, login: str | None = None) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(url, login=login)
    try:
        yield store
    finally:
        await store.close()


async def save(store: Store, text: str, user: str | None, project: str | None) -> None:
    await MemoryStore(store).save_memory(
        text, MemoryType.LONGTERM, SourceType.DECISION, user_id=user, project=project
    )


async def recall(store: Store, question: str, user: str, project: str) -> list[str]:
    options = RetrievalOptions(10, user, project)
    return [one.content for one in await RetrievalOrchestrator(store).retrieve(question, options)]


async def test_a_process_is_the_user_of_its_login(database: SharedDatabase) -> None:
    async with opened(database.requests, database.ann) as store:
        assert store.needs_login
        assert store.login is not None
        assert store.login.user == "ann"
        assert database.ann not in repr(store.login)
    async with opened(database.requests, "ecl_nonsense") as store:
        assert store.login is None
    async with opened(database.owner, database.ann) as store:
        assert not store.needs_login


async def test_questions_find_what_the_login_may_see_whatever_they_name(
    database: SharedDatabase,
) -> None:
    async with opened(database.requests, database.ann) as store:
        asked = "when does the other project deploy"
        assert await recall(store, asked, "bob", OTHER_PROJECT) == []
        assert SHARED not in await recall(store, asked, "ann", OTHER_PROJECT)
        assert "The app is released on Mondays" in await recall(
            store, "when is the app released", "ann", PROJECT
        )


async def test_requests_of_two_users_share_connections_and_nothing_else(
    database: SharedDatabase,
) -> None:
    """A server has one pool; each statement runs under the login of its own request."""
    who = {"ann": Login("ann", database.ann), "bob": Login("bob", database.bob)}
    async with opened(database.requests) as store:
        for _ in range(3):
            for name, login in who.items():
                with logged_in(login):
                    rows = await store.fetch_all("SELECT user_id FROM sessions")
                    assert [row["user_id"] for row in rows] == [name]
                    async with store.transaction("") as inside:
                        rows = await inside.fetch_all("SELECT user_id FROM sessions")
                        assert [row["user_id"] for row in rows] == [name]
            assert await store.fetch_all("SELECT * FROM sessions") == []


async def test_writing_needs_a_role_that_writes(database: SharedDatabase) -> None:
    async with opened(database.requests, database.ann) as store:
        await save(store, "Ann's own note about it", "ann", OTHER_PROJECT)
        for user, project in ((None, OTHER_PROJECT), ("bob", PROJECT), (None, None)):
            with pytest.raises(StoreForbidden):
                await save(store, "planted", user, project)
    async with opened(database.requests, database.bob) as store:
        assert "Ann's own note about it" not in await recall(store, "note", "bob", OTHER_PROJECT)


async def test_roles_of_groups_and_users(database: SharedDatabase) -> None:
    async with opened(database.owner) as store:
        users = Users(store)
        carl = await users.add("carl")
        await users.add_to_group("readers", ["carl"])
        await users.grant("readers", PROJECT, "reader", group=True)
        assert await users.groups() == {"readers": ["carl"]}
    async with opened(database.requests, carl) as store:
        mondays = "The app is released on Mondays"
        assert mondays in await recall(store, "when is the app released", "carl", PROJECT)
        with pytest.raises(StoreForbidden):
            await save(store, "planted", None, PROJECT)
        with pytest.raises(StoreForbidden):
            await Users(store).grant("carl", PROJECT, "admin")
    async with opened(database.owner) as store:
        await Users(store).grant("carl", PROJECT, "member")
    async with opened(database.requests, carl) as store:
        await save(store, "Carl writes now", None, PROJECT)
    async with opened(database.owner) as store:
        await Users(store).remove("carl")
        with pytest.raises(ConfigError, match="still there"):
            await Users(store).add("carl")
        listed = {user.name: user for user in await Users(store).all()}
        assert (listed["carl"].logins, listed["carl"].projects) == (0, ())
    async with opened(database.requests, carl) as store:
        assert store.login is None


async def test_an_admin_of_a_project_chooses_its_members(database: SharedDatabase) -> None:
    async with opened(database.requests, database.bob) as store:
        users = Users(store)
        await users.grant("ann", OTHER_PROJECT, "reader")
        roles = {one.user: one.role for one in await users.members(OTHER_PROJECT)}
        assert roles == {"ann": "reader", "bob": "admin"}
        assert await users.members(PROJECT) == []
        with pytest.raises(StoreForbidden):
            await users.grant("bob", PROJECT, "reader")
        with pytest.raises(ConfigError, match="owner of the database"):
            await users.add("mallory")
    async with opened(database.requests, database.ann) as store:
        assert SHARED in await recall(store, "who deploys on Fridays", "ann", OTHER_PROJECT)
    async with opened(database.requests, database.bob) as store:
        await Users(store).grant("ann", OTHER_PROJECT, None)
    async with opened(database.requests, database.ann) as store:
        assert SHARED not in await recall(store, "who deploys on Fridays", "ann", OTHER_PROJECT)


async def test_keys_and_rules_are_the_logins_own(database: SharedDatabase) -> None:
    async with opened(database.owner) as store:
        await StoredRules(store, "/app").add(parse("deny", "run_command(rm *)"))
    for secret, value in ((database.ann, "a"), (database.bob, "b")):
        async with opened(database.requests, secret) as store:
            await put_value(store, "size", value)
            await StoredRules(store, "/app").add(parse("allow", f"write_file({value}/**)"))
    async with opened(database.requests, database.ann) as store:
        assert await get_value(store, "size") == "a"
        assert [row["key"] for row in await values_below(store, "si")] == ["size"]
        rules = [rule.text for rule in await StoredRules(store, "/app").all()]
        assert rules == ["run_command(rm *)", "write_file(a/**)"]
        assert not await StoredRules(store, "/app").remove("run_command(rm *)")


async def test_what_is_wrong_is_said_and_changes_nothing(database: SharedDatabase) -> None:
    async with opened(database.owner) as store:
        users = Users(store)
        for problem, work in (
            (ConfigError, users.add("ann")),
            (ConfigError, users.add("a:b")),
            (ConfigError, users.add(" ")),
            (NotFound, users.remove("nobody")),
            (NotFound, users.new_token("nobody")),
            (NotFound, users.grant("nobody", PROJECT, "reader")),
            (NotFound, users.grant("nobody", PROJECT, "reader", group=True)),
            (NotFound, users.remove_from_group("nobody", [])),
            (UsageError, users.grant("ann", PROJECT, "king")),
        ):
            with pytest.raises(problem):
                await work
        with pytest.raises(ConfigError, match="more than requests should"):
            await store.grant_role(OWNER)


async def test_rules_are_written_again_where_the_search_was_built_anew(
    database: SharedDatabase,
) -> None:
    async with opened(database.owner) as store:
        await store.execute("COMMENT ON TABLE memory_documents IS 'old'")
        await store.execute("COMMENT ON TABLE users IS 'old'")
    async with opened(database.owner):
        pass
    async with opened(database.requests, database.ann) as store:
        assert store.has_memory_search
        rows = await store.fetch_all("SELECT DISTINCT user_id FROM memory_scopes ORDER BY 1")
        assert [row["user_id"] for row in rows] == ["", "ann"]


async def test_a_token_ends_at_its_time(database: SharedDatabase) -> None:
    async with opened(database.owner) as store:
        secret = await Users(store).new_token("ann", days=1)
        async with opened(database.requests, secret) as logged:
            assert logged.login is not None
        await store.execute(
            "UPDATE logins SET until = now() - interval '1 second' WHERE until > now()"
        )
    async with opened(database.requests, secret) as logged:
        assert logged.login is None


async def test_a_file_has_no_users(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    with pytest.raises(ConfigError, match="no users"):
        Users(store)
    await store.close()


async def test_a_role_that_bypasses_the_rules_is_refused(database: SharedDatabase) -> None:
    role = "ec_bypassing"
    if not postgres.run(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
        postgres.run(f"CREATE ROLE {role} LOGIN BYPASSRLS")
    async with opened(database.owner) as store:
        with pytest.raises(ConfigError, match="more than requests should"):
            await store.grant_role(role)
    with pytest.raises(ConfigError, match="bypass row-level security"):
        await PostgresStore.open(as_address(database.owner, role))


async def test_a_process_works_for_its_logins_user_and_not_for_a_name(
    database: SharedDatabase,
) -> None:
    settings = replace(load({}), user="bob", login=database.ann)
    async with opened(database.requests, database.ann) as store:
        assert await acting_user(store, settings) == "ann"
    async with opened(database.requests) as store:
        assert await acting_user(store, replace(settings, login=None), serving=True) is None
        for login, problem in ((None, "who you are"), ("ecl_ended", "no login of this")):
            with pytest.raises(ConfigError, match=problem):
                await acting_user(store, replace(settings, login=login))
    async with opened(database.owner) as store:
        assert await acting_user(store, settings) == "bob"


async def test_a_request_is_let_in_by_its_token_alone(database: SharedDatabase) -> None:
    async def served() -> str:
        return PROJECT

    def bearer(token: str) -> list[tuple[bytes, bytes]]:
        return [(b"authorization", f"Bearer {token}".encode())]

    async with opened(database.requests) as store:
        check = LoginCheck(store, served)
        assert check.is_needed
        login = await check.check_headers(bearer(database.ann))
        assert (login.user, login.role) == ("ann", "member")
        with pytest.raises(StoreForbidden, match="no member"):
            await check.check_headers(bearer(database.bob))
        named = (b"x-evercontext-user", b"ann")
        for headers in (
            [],
            bearer(""),
            bearer("ann"),
            bearer("ecl_\0"),
            bearer("é" * 9),
            bearer("x" * 5_000),
            [*bearer(database.ann), named],
            [*bearer(database.ann), *bearer(database.ann)],
        ):
            with pytest.raises(Unauthorized):
                await check.check_headers(headers)
    async with opened(database.owner) as store:
        assert not LoginCheck(store, served).is_needed
