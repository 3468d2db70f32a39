from __future__ import annotations

from dataclasses import replace

import pytest

from evercontext.domain.principal import Principal
from evercontext.domain.tool import Door
from evercontext.errors import Changed
from evercontext.workspace.reads import ReadLedger
from tests.workspace.conftest import CALLER

TEXT = "1\n2\n3\n4\n"
LINES = 4


@pytest.mark.contract("N28")
def test_pieces_make_a_whole() -> None:
    ledger = ReadLedger()
    ledger.note(CALLER, "a", "h", TEXT, LINES, (3, 4))
    with pytest.raises(Changed, match="only lines 3-4 of 4"):
        ledger.check(CALLER, "a", "h")
    ledger.note(CALLER, "a", "h", TEXT, LINES, (1, 2))
    ledger.check(CALLER, "a", "h")


def test_pieces_of_different_versions_do_not() -> None:
    ledger = ReadLedger()
    ledger.note(CALLER, "a", "h", TEXT, LINES, (1, 2))
    ledger.note(CALLER, "a", "i", TEXT, LINES, (3, 4))
    with pytest.raises(Changed):
        ledger.check(CALLER, "a", "i")


def test_readers_are_separate() -> None:
    ledger = ReadLedger()
    ledger.note(CALLER, "a", "h", TEXT, LINES)
    for other in (
        replace(CALLER, session="s2"),
        replace(CALLER, session=None),
        replace(CALLER, session=None, door=Door.MCP, principal=Principal(user="x")),
    ):
        with pytest.raises(Changed, match="not read yet"):
            ledger.check(other, "a", "h")


def test_an_outside_client_may_change_its_trace_between_calls() -> None:
    ledger = ReadLedger()
    client = replace(CALLER, session=None, door=Door.MCP, trace_id="one")
    ledger.note(client, "a", "h", TEXT, LINES)
    ledger.check(replace(client, trace_id="two"), "a", "h")


def test_memory_is_bounded() -> None:
    ledger = ReadLedger()
    for n in range(600):
        ledger.note(CALLER, f"{n}", "h", TEXT, LINES)
    with pytest.raises(Changed):
        ledger.check(CALLER, "0", "h")
    ledger.check(CALLER, "599", "h")
