from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.access.permissions import StoredRules, open_permissions
from evercontext.access.rules import parse
from evercontext.domain.tool import Effect, Tool, ToolResult
from evercontext.errors import StoreGone
from evercontext.storage.opener import open_or_wait
from tests import postgres

pytestmark = pytest.mark.case(122)


async def nothing(*_: object) -> ToolResult:
    return ToolResult("")


WRITE = Tool("write_file", "Write.", {}, Effect.WRITE, nothing)
READ = Tool("read_file", "Read.", {}, Effect.READ, nothing)


async def test_what_was_denied_stays_denied_while_the_server_is_away(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", postgres.new_database())
    stored = StoredRules(store, "/p")
    await stored.add(parse("allow", "write_file(docs/**)"))
    await stored.add(parse("deny", "write_file(src/**)"))
    assert await stored.remove("write_file(docs/**)")
    with postgres.away():
        permissions = await open_permissions(stored, "/p", yes=True)
        assert [rule.text for rule in permissions.stored] == ["write_file(src/**)"]
        assert permissions.ruling(WRITE, {"path": "src/a.py"}).verdict == "deny"
        assert permissions.ruling(WRITE, {"path": "a.py"}).verdict == "allow"
        with pytest.raises(StoreGone):
            await stored.add(parse("allow", "write_file(a.py)"))
    await store.close()


async def test_rules_that_were_never_read_may_say_anything(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", "postgresql://me@127.0.0.1:9/none")
    permissions = await open_permissions(StoredRules(store, "/p"), "/p", yes=True)
    assert permissions.unread
    assert permissions.ruling(WRITE, {"path": "a.py"}).verdict == "ask"
    assert permissions.ruling(READ, {"path": "a.py"}).verdict == "allow"
    await store.close()
