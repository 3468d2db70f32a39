from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.access.approval_rules import parse
from evercontext.access.permissions import StoredRules, open_permissions
from evercontext.domain.tool import CommandAccess, Effect, Tool, ToolResult
from evercontext.errors import StoreGone
from evercontext.settings import Settings
from evercontext.storage.opener import open_or_wait
from evercontext.testing import memory_store
from tests import postgres

pytestmark = pytest.mark.case(122)


async def nothing(*_: object) -> ToolResult:
    return ToolResult("")


WRITE = Tool("write_file", "Write.", {}, Effect.WRITE, nothing)
SETTINGS = Settings(root=Path("/p"))
READ = Tool("read_file", "Read.", {}, Effect.READ, nothing)


async def test_what_was_denied_stays_denied_while_the_server_is_away(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", postgres.new_database())
    stored = StoredRules(store, "/p")
    await stored.add(parse("allow", "write_file(docs/**)"))
    await stored.add(parse("deny", "write_file(src/**)"))
    assert await stored.remove("write_file(docs/**)")
    with postgres.away():
        permissions = await open_permissions(stored, SETTINGS, yes=True)
        assert [rule.text for rule in permissions.stored] == ["write_file(src/**)"]
        assert permissions.ruling(WRITE, {"path": "src/a.py"}).verdict == "deny"
        assert permissions.ruling(WRITE, {"path": "a.py"}).verdict == "allow"
        with pytest.raises(StoreGone):
            await stored.add(parse("allow", "write_file(a.py)"))
    await store.close()


async def test_rules_that_were_never_read_may_say_anything(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", "postgresql://me@127.0.0.1:9/none")
    permissions = await open_permissions(StoredRules(store, "/p"), SETTINGS, yes=True)
    assert permissions.unread
    assert permissions.ruling(WRITE, {"path": "a.py"}).verdict == "ask"
    assert permissions.ruling(READ, {"path": "a.py"}).verdict == "allow"
    await store.close()


async def test_settings_open_the_network_to_commands(tmp_path: Path) -> None:
    """A3: what an unattended run is allowed beforehand, by a flag or in the user's settings."""
    run = Tool("run_command", "Run.", {}, Effect.EXECUTE, nothing)
    settings = Settings(
        root=Path("/p"), allow_network=("npm install *",), allow_outside=("docker ps *",)
    )
    async with memory_store() as store:
        permissions = await open_permissions(StoredRules(store, "/p"), settings, yes=True)
    assert permissions.granted(run, {"command": "npm install x"}) is CommandAccess.NETWORK
    assert permissions.granted(run, {"command": "docker ps -a"}) is CommandAccess.OUTSIDE
    assert permissions.granted(run, {"command": "npm publish"}) is CommandAccess.SANDBOX
