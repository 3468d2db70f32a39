from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.message import assistant, user
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door
from evercontext.memory.messages import MessageRepository
from evercontext.memory.session_search import excerpt, look_back_tool, search
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.store import Store
from evercontext.testing import memory_store

HERE = Path("/p/here")


async def talk(store: Store, project: Path, *texts: str, user_id: str | None = None) -> str:
    session = await SessionRepository(store).create(project, "m", user_id=user_id)
    messages = MessageRepository(store)
    for text in texts:
        await messages.append(session.id, user(text))
        await messages.append(session.id, assistant("ok"))
    return session.id


async def found(store: Store, query: str) -> list[str]:
    return [hit.excerpt for hit in await search(store, HERE, query)]


async def test_words_parts_of_words_and_japanese() -> None:
    async with memory_store() as store:
        await talk(
            store, HERE, "Refactor the payment gateway", "認証まわりの不具合を直す", "支払い処理"
        )
        assert await found(store, "GATEWAY payment") == ["Refactor the payment gateway"]
        assert await found(store, "efact") == ["Refactor the payment gateway"]
        assert await found(store, "不具合を") == ["認証まわりの不具合を直す"]
        assert await found(store, "認証") == ["認証まわりの不具合を直す"]
        assert await found(store, "支払 処理") == ["支払い処理"]
        assert await found(store, "payment 認証") == []


@pytest.mark.contract("N38")
async def test_another_projects_words_are_not_found() -> None:
    async with memory_store() as store:
        await talk(store, Path("/p/there"), "a secret plum")
        assert await found(store, "plum") == []


async def test_another_users_words_are_not_found(database: Store) -> None:
    await talk(database, HERE, "ann's plum", user_id="ann")
    bobs = await talk(database, HERE, "bob's plum", user_id="bob")
    await talk(database, HERE, "the project's plum")
    hits = await search(database, HERE, "plum", user_id="ann")
    assert [hit.excerpt for hit in hits] == ["the project's plum", "ann's plum"]
    assert await found(database, "plum") == ["the project's plum"]
    assert await search(database, HERE, "plum", user_id="ann", session=bobs) == []
    ann = Caller("t", Door.CHAT, principal=Principal(user="ann"), session=bobs)
    looked = await look_back_tool(database, HERE).run({"query": "plum"}, ann)
    assert "bob" not in looked.text


async def test_what_is_taken_back_or_deleted_is_not_found() -> None:
    async with memory_store() as store:
        id = await talk(store, HERE, "first plum", "second plum")
        assert len(await found(store, "plum")) == 2
        await MessageRepository(store).forget_after(id, 2)
        assert await found(store, "plum") == ["first plum"]
        await talk(store, HERE, "third plum")
        assert await found(store, "plum") == ["third plum", "first plum"]
        await SessionRepository(store).delete(id)
        assert await found(store, "plum") == ["third plum"]
        left = await store.fetch_all(
            "SELECT content FROM message_words WHERE content LIKE '%first%'"
        )
        assert left == []


@pytest.mark.case(116)
@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "AND",
        "OR NOT",
        "(",
        ")" * 5000,
        "*",
        "NEAR(",
        "content:x",
        "a\0b",
        "^x",
        "-x",
        "x" * 100_000,
        "{a b}",
        "'; DROP TABLE messages; --",
        "_",
        "!",
        "col : x",
        "a+b",
        "\ud800",
    ],
)
async def test_no_query_is_taken_for_syntax(query: str) -> None:
    async with memory_store() as store:
        await talk(store, HERE, "plain words")
        assert await found(store, query) == []
        assert await found(store, "plain") == ["plain words"]


async def test_short_words_with_signs_are_taken_literally() -> None:
    async with memory_store() as store:
        await talk(store, HERE, "100% sure", "nothing here")
        assert await found(store, "0%") == ["100% sure"]
        assert await found(store, "%") == ["100% sure"]


async def test_a_conversation_looks_back_into_itself_alone() -> None:
    async with memory_store() as store:
        id = await talk(store, HERE, "the port was 4711")
        await talk(store, HERE, "another port: 4711")
        tool = look_back_tool(store, HERE)
        result = await tool.run({"query": "4711"}, Caller("t", Door.CHAT, session=id))
        assert "the port was 4711" in result.text
        assert "another" not in result.text
        missing = await tool.run({"query": "unsaid"}, Caller("t", Door.CHAT, session=id))
        assert "nothing" in missing.text


def test_an_excerpt_shows_the_place() -> None:
    text = "x " * 900 + "Needle" + " y" * 900
    shown = excerpt(text, "needle")
    assert "Needle" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 600
