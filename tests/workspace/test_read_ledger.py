from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest

from evercontext.domain.message import Message
from evercontext.domain.principal import Principal
from evercontext.domain.sent_tool_output import Ranges, Sent, View
from evercontext.domain.tool import Caller, Door
from evercontext.errors import Changed
from evercontext.files.file_tree import FileText
from evercontext.workspace.read_ledger import ReadLedger, check_seen
from evercontext.workspace.search_and_replace import Edit, apply_edits
from tests.workspace.conftest import CALLER

TEXT = "1\n2\n3\n4\n"


def file(content: str = TEXT, path: str = "a") -> FileText:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return FileText(path, content, digest, len(content))


def read(
    ledger: ReadLedger, caller: Caller, whole: FileText, start: int = 0, end: int | None = None
) -> None:
    end = len(whole.content) if end is None else end
    ledger.note_read(caller, whole, start, end, whole.content[start:end])


def seen_by(caller: Caller, text: str, shown: Ranges | None) -> None:
    """The running call returned this text, and so much of it is in the next request."""
    assert caller.view
    message = Message("tool", text, tool_call_id="c")
    caller.view.returned(message, text)
    caller.view.update([Sent(message, shown)])


@pytest.mark.contract("N28")
def test_pieces_make_a_whole() -> None:
    ledger = ReadLedger()
    read(ledger, CALLER, file(), 4, 8)
    with pytest.raises(Changed, match=r"only lines 3-4 of 4.*read lines 1-2 first"):
        ledger.check_whole(CALLER, file(), "edit_file")
    read(ledger, CALLER, file(), 0, 4)
    ledger.check_whole(CALLER, file(), "edit_file")


def test_pieces_of_different_versions_do_not() -> None:
    ledger = ReadLedger()
    read(ledger, CALLER, file("1\n2\n3\n5\n"), 0, 4)
    read(ledger, CALLER, file(), 4, 8)
    with pytest.raises(Changed):
        ledger.check_whole(CALLER, file(), "edit_file")


def test_readers_are_separate() -> None:
    ledger = ReadLedger()
    read(ledger, CALLER, file())
    for other in (
        replace(CALLER, session="s2"),
        replace(CALLER, session=None),
        replace(CALLER, session=None, door=Door.MCP, principal=Principal(user="x")),
        replace(CALLER, view=View()),
    ):
        with pytest.raises(Changed, match="not read yet"):
            ledger.check_read(other, file())


def test_an_outside_client_may_change_its_trace_between_calls() -> None:
    ledger = ReadLedger()
    client = replace(CALLER, session=None, door=Door.MCP, trace_id="one")
    read(ledger, client, file())
    ledger.check_whole(replace(client, trace_id="two"), file(), "edit_file")


def test_memory_is_bounded() -> None:
    ledger = ReadLedger()
    for n in range(600):
        read(ledger, CALLER, file(path=f"{n}"))
    with pytest.raises(Changed):
        ledger.check_read(CALLER, file(path="0"))
    ledger.check_read(CALLER, file(path="599"))


@pytest.mark.contract("N28")
def test_only_what_was_sent_counts() -> None:
    """V5: a read whose middle the window cut, or that it left out, is not the whole file."""
    ledger, caller = ReadLedger(), replace(CALLER, view=View())
    read(ledger, caller, file())
    with pytest.raises(Changed, match="none of the 4 lines"):
        ledger.check_whole(caller, file(), "edit_file")
    seen_by(caller, TEXT, ((0, 3), (6, 8)))
    with pytest.raises(Changed, match=r"only lines 1-1, 4-4 of 4.*read lines 2-3 first"):
        ledger.check_whole(caller, file(), "edit_file")
    assert ledger.seen(caller, file()) == ((0, 3), (6, 8))


def test_what_is_left_out_later_was_seen_and_is_not_before_the_model() -> None:
    """V5, F7: a part that was seen may be replaced, the whole may not."""
    ledger, caller = ReadLedger(), replace(CALLER, view=View())
    read(ledger, caller, file())
    seen_by(caller, TEXT, ((0, 8),))
    ledger.check_whole(caller, file(), "edit_file")
    assert caller.view
    caller.view.update([])
    with pytest.raises(Changed, match="none of the 4 lines"):
        ledger.check_whole(caller, file(), "edit_file")
    assert ledger.seen(caller, file()) == ((0, 8),)


@pytest.mark.contract("N28")
async def test_a_part_needs_only_that_part() -> None:
    """F7: and what is known moves along with each edit."""
    ledger = ReadLedger()
    read(ledger, CALLER, file(), 2, 6)
    edits = [Edit("2\n", "two\ntwo\n"), Edit("two\n3", "3")]
    content, applied = apply_edits(TEXT, edits)
    check_seen(file(), ledger.seen(CALLER, file()), applied)
    after = file(content)
    await ledger.note_edited(CALLER, "a", after.sha256, content, applied)
    assert content == "1\ntwo\n3\n4\n"
    assert ledger.seen(CALLER, after) == ((2, 8),)
    _, unseen = apply_edits(content, [Edit("4", "four")])
    with pytest.raises(Changed, match=r"edit 1 is at line 4 of a.*Read lines 1-9"):
        check_seen(after, ledger.seen(CALLER, after), unseen)


async def test_very_many_places_stay_known() -> None:
    """X8: edits of a chain each see what the one before made."""
    ledger, commas = ReadLedger(), file("," * 500)
    read(ledger, CALLER, commas)
    edits = [Edit(",", ",,", replace_all=True), Edit(",", ";", replace_all=True)]
    content, applied = apply_edits(commas.content, edits)
    check_seen(commas, ledger.seen(CALLER, commas), applied)
    after = file(content)
    await ledger.note_edited(CALLER, "a", after.sha256, content, applied)
    assert ledger.seen(CALLER, after) == ((0, 1000),)
    ledger.check_whole(CALLER, after, "edit_file")


@pytest.mark.contract("N28")
@pytest.mark.parametrize("view", [None, View()], ids=["client", "model"])
async def test_what_lies_between_many_places_and_was_not_shown_stays_unknown(
    view: View | None,
) -> None:
    """V5: 300 places in two edits of one call, and a line between them that nobody showed."""
    ledger, caller = ReadLedger(), replace(CALLER, view=view)
    upper, hidden, lower = "a\n" * 75 + "b\n" * 75, "hidden\n", "a\n" * 75 + "b\n" * 75
    text = file(upper + hidden + lower)
    for start in (0, len(upper + hidden)):
        read(ledger, caller, text, start, start + len(upper))
        if view:
            seen_by(caller, upper, ((0, len(upper)),))
    assert ledger.seen(caller, text) == ((0, 300), (307, 607))
    edits = [Edit("a", "xx", replace_all=True), Edit("b", "yy", replace_all=True)]
    content, applied = apply_edits(text.content, edits)
    check_seen(text, ledger.seen(caller, text), applied)
    after = file(content)
    await ledger.note_edited(caller, "a", after.sha256, content, applied)
    seen = ledger.seen(caller, after)
    assert not any(a < 457 and b > 450 for a, b in seen), seen
    _, unseen = apply_edits(content, [Edit("hidden", "lost")])
    with pytest.raises(Changed, match="not shown yet"):
        check_seen(after, seen, unseen)
    with pytest.raises(Changed, match="would be replaced"):
        ledger.check_whole(caller, after, "edit_file")


@pytest.mark.parametrize("view", [None, View()], ids=["client", "model"])
async def test_hundreds_of_edits_leave_few_pieces_and_the_loop_free(view: View | None) -> None:
    ledger, caller = ReadLedger(), replace(CALLER, view=view)
    text = file("".join(f"line {n:04}\n" for n in range(300)))
    read(ledger, caller, text)
    if view:
        seen_by(caller, text.content, ((0, len(text.content)),))
    for word in ("first", "second"):
        edits = [Edit(line, f"{word} {line[-4:]}") for line in text.content.split("\n")[:-1]]
        content, applied = apply_edits(text.content, edits)
        text = file(content)
        noting = asyncio.create_task(ledger.note_edited(caller, "a", text.sha256, content, applied))
        await asyncio.sleep(0)
        assert not noting.done(), "it was computed on the loop"
        await noting
        pieces = ledger._readers[next(iter(ledger._readers))]["a"].pieces
        assert len(pieces) <= 500
        if view is None:
            assert ledger.seen(caller, text) == ((0, len(content)),)
