from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evercontext.domain.tool import Door, Effect, FileChange, Mode, ToolResult
from evercontext.files.text_search import MOST_SECONDS
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate
from evercontext.tools.toolbox import Toolbox
from tests.workspace.conftest import CALLER, Call


def code(result: ToolResult) -> str | None:
    return result.error.code if result.error else None


@pytest.mark.contract("N21", "E9", "E10", "E11", "N15", "N16", "N17", "N18", "N19")
def test_schemas(toolbox: Toolbox) -> None:
    tools = {tool.name: tool for tool in toolbox}
    required = {
        "list_files": ["path"],
        "list": ["path"],
        "read_file": ["path"],
        "readFile": ["path"],
        "write_file": ["path", "content", "mode"],
        "writeFile": ["path", "content"],
        "editFile": ["path", "new_content"],
        "searchInDirectory": ["directory", "keyword"],
        "edit_file": ["path", "edits"],
    }
    for name, expected in required.items():
        assert tools[name].arguments["required"] == expected
    for tool in tools.values():
        assert tool.arguments["additionalProperties"] is False
        assert all(p["description"] for p in tool.arguments["properties"].values())
        assert tool.writes is (tool.preview is not None)
        assert bool(tool.effects & Effect.EXECUTE) is False
    whole = tools["editFile"].arguments["properties"]["new_content"]["description"]
    assert "complete new content" in whole
    assert "Read the file" in whole
    native = {tool.name for tool in toolbox.offered(Mode.PLAN, "native")}
    assert native == {"list", "readFile", "searchInDirectory"}


@pytest.mark.contract("E9", "E10", "E11", "E15")
async def test_the_gateway_shapes(call: Call, place: Path) -> None:
    done = await call("write_file", path="./app/main.py", content="x = 1\n", mode="create")
    assert done.data == {"status": "ok", "path": "app/main.py"}
    assert done.changes == (FileChange("app/main.py", None, "x = 1\n"),)
    again = await call("write_file", path="app/main.py", content="", mode="create")
    assert code(again) == "exists"
    assert (await call("read_file", path="app/main.py")).data == {"content": "x = 1\n"}
    listed = await call("list_files", path=".")
    assert listed.data == {"files": [{"name": "app", "is_dir": True}]}
    listed = await call("list_files", path="app", extensions=[".py"], max_items=5)
    assert listed.data == {"files": [{"name": "main.py", "is_dir": False, "size": 6}]}
    (place / "b.txt").write_text("")
    assert (await call("list_files", path=".", max_items=1)).data["truncated"] is True
    assert code(await call("read_file", path="none.py")) == "not_found"
    assert code(await call("write_file", path="a.py", content="x", mode="w")) == "invalid_arguments"


@pytest.mark.contract("N15", "N16", "N17", "N18", "N19")
async def test_the_native_names(call: Call, place: Path) -> None:
    assert (await call("writeFile", path="src/a.py", content="hello = 1\n")).ok
    assert code(await call("writeFile", path="src/a.py", content="x")) == "exists"
    assert (await call("list", path=".")).data == ["src/"]
    assert (await call("list", path=".", recursive=True)).data == ["src/", "src/a.py"]
    assert (await call("readFile", path="src/a.py")).text == "hello = 1\n"
    edited = await call("editFile", path="src/a.py", new_content="hello = 2\n")
    assert edited.changes == (FileChange("src/a.py", "hello = 1\n", "hello = 2\n"),)
    found = await call("searchInDirectory", directory=".", keyword="hello")
    assert found.data == ["src/a.py"]
    assert (await call("searchInDirectory", directory=".", keyword="bye")).data == []
    assert code(await call("editFile", path="none.py", new_content="x")) == "not_found"


@pytest.mark.contract("N28")
async def test_an_edit_needs_a_read(call: Call, place: Path) -> None:
    (place / "a.py").write_text("a = 1\n")
    edits = [{"old": "a = 1", "new": "a = 2"}]
    for result in (
        await call("edit_file", path="a.py", edits=edits),
        await call("editFile", path="a.py", new_content="x"),
    ):
        assert code(result) == "changed"
        assert "Read it" in result.text
    await call("readFile", path="a.py", session="other")
    assert code(await call("edit_file", path="a.py", edits=edits)) == "changed"
    await call("readFile", path="a.py")
    (place / "a.py").write_text("a = 1\nthe user's\n")
    refused = await call("edit_file", path="a.py", edits=edits)
    assert "changed since it was read" in refused.text
    assert (place / "a.py").read_text() == "a = 1\nthe user's\n"
    await call("readFile", path="a.py")
    done = await call("edit_file", path="a.py", edits=edits)
    assert done.text == "edited a.py; edit 1 at line 1"
    again = [{"old": "a = 2", "new": "a = 3"}]
    assert (await call("replaceInFile", path="a.py", edits=again)).ok
    assert (await call("write_file", path="a.py", content="new", mode="overwrite")).ok


@pytest.mark.contract("N28")
async def test_an_edit_that_holds_the_lines_around_it_needs_no_read(
    call: Call, place: Path
) -> None:
    """F7: a patch with its context lines was refused as "was not read yet"."""
    (place / "a.py").write_text(
        "def f():\n    a = 1\n    b = 1\n    return a\n" + "\n" * 9 + "z = 1\n"
    )
    good = {"old": "    a = 1\n    b = 1", "new": "    a = 1\n    b = 2"}
    for wrong in (
        {"old": "b = 1", "new": "b = 2"},
        {"old": "    a = 1\n    b = 1", "new": "    a = 2\n    b = 2"},
        {"old": "    a = 1\n    b = 3", "new": "    a = 1\n    b = 2"},
        {"old": "  a = 1\n  b = 1", "new": "  a = 1\n  b = 2"},
        {"old": "    a = 1\n    b = 1", "new": ""},
        good | {"replace_all": True},
    ):
        refused = await call("edit_file", path="a.py", edits=[good, wrong])
        assert "a.py was not read yet" in refused.text, wrong
    done = await call("edit_file", path="a.py", edits=[good])
    assert done.text == "edited a.py; edit 1 at line 2"
    unseen = await call("edit_file", path="a.py", edits=[{"old": "z = 1", "new": "z = 2"}])
    assert "which was not shown yet" in unseen.text
    (place / "a.py").write_text("def f():\n    a = 1\n    b = 1\n")
    stale = await call("edit_file", path="a.py", edits=[good])
    assert "changed since it was read" in stale.text


@pytest.mark.contract("N28")
async def test_a_truncated_read_does_not_count(call: Call, place: Path) -> None:
    (place / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 10_001)))
    edits = [{"old": "line 10000\n", "new": "last\n"}]
    first = await call("readFile", path="long.txt")
    assert first.text.startswith("[lines 1-")
    refused = await call("edit_file", path="long.txt", edits=edits)
    assert "only lines 1-" in refused.text
    shown = first.text.count("\n") - 1
    rest = await call("readFile", path="long.txt", start_line=shown + 1)
    assert rest.text.startswith(f"line {shown + 1}\n")
    assert (await call("edit_file", path="long.txt", edits=edits)).ok
    whole = await call("read_file", door=Door.REST, path="long.txt")
    assert whole.data["content"].endswith("last\n")
    assert code(await call("readFile", path="long.txt", start_line=99_999)) == "invalid_arguments"


@pytest.mark.parametrize("door", [Door.REST, Door.MCP, Door.CHAT])
async def test_a_page_that_is_not_there_is_refused(call: Call, place: Path, door: Door) -> None:
    (place / "empty.txt").write_text("")
    (place / "three.txt").write_text("1\n2\n3\n")
    refused = await call("read_file", door=door, path="empty.txt", offset=1)
    assert code(refused) == "invalid_arguments"
    assert "line 1 has only 0 characters" in refused.text
    refused = await call("read_file", door=door, path="three.txt", start_line=3, end_line=2)
    assert code(refused) == "invalid_arguments"
    assert "end_line: 2 is before start_line, 3" in refused.text
    assert (await call("read_file", door=door, path="empty.txt", start_line=1, end_line=1)).ok
    assert (await call("read_file", door=door, path="three.txt", start_line=3, end_line=3)).ok


async def test_appending_is_not_reading(call: Call, place: Path) -> None:
    (place / "a.txt").write_text("unseen\n")
    await call("write_file", path="a.txt", content="seen\n", mode="append")
    edits = [{"old": "seen\n", "new": "x\n"}]
    assert code(await call("edit_file", path="a.txt", edits=edits)) == "changed"


@pytest.mark.contract("E22", "N2")
async def test_every_door_has_its_policy(call: Call) -> None:
    write = {"path": "a.rs", "content": "fn main() {}", "mode": "create"}
    assert code(await call("write_file", door=Door.REST, **write)) == "extension_not_allowed"
    assert code(await call("write_file", door=Door.MCP, **write)) == "extension_not_allowed"
    assert (await call("write_file", door=Door.RUN, **write)).ok
    exe = {**write, "path": "a.exe"}
    assert code(await call("write_file", door=Door.RUN, **exe)) == "extension_not_allowed"


@pytest.mark.contract("E34", "N7")
async def test_dry_run_shows_and_writes_nothing(call: Call, place: Path) -> None:
    (place / "a.txt").write_text("old\n")
    await call("readFile", path="a.txt")
    dry = {"in_mode": Mode.DRY_RUN}
    changes = [
        await call("writeFile", path="d/n.txt", content="new", **dry),
        await call("edit_file", path="a.txt", edits=[{"old": "old", "new": "new"}], **dry),
        await call("delete_file", path="a.txt", **dry),
        await call("move_file", path="a.txt", to="b.txt", **dry),
    ]
    assert [change for result in changes for change in result.changes] == [
        FileChange("d/n.txt", None, "new"),
        FileChange("a.txt", "old\n", "new\n"),
        FileChange("a.txt", "old\n", None),
        FileChange("a.txt", "old\n", None),
        FileChange("b.txt", None, "old\n"),
    ]
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    assert code(await call("writeFile", path="a.txt", content="", **dry)) == "exists"
    assert code(await call("writeFile", path="a.exe", content="", **dry)) == "extension_not_allowed"
    plan = await call("writeFile", path="new.txt", content="", in_mode=Mode.PLAN)
    assert code(plan) == "mode_refused"


@pytest.mark.contract("N30")
async def test_control_characters_are_kept_and_reported(call: Call, place: Path) -> None:
    done = await call("writeFile", path="a.txt", content="a\x1b[0m\x07\tb\n")
    assert (place / "a.txt").read_bytes() == b"a\x1b[0m\x07\tb\n"
    assert done.text.endswith("contains control characters U+0007 U+001B")
    assert code(await call("writeFile", path="b.txt", content="a\0b")) == "not_utf8"


async def test_the_form_of_a_file_survives_whole_edits(call: Call, place: Path) -> None:
    (place / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await call("readFile", path="a.txt")
    done = await call("editFile", path="a.txt", new_content="one\nthree\n")
    assert (place / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"
    assert "kept its CRLF line endings" in done.text


async def test_an_edit_is_no_way_through_a_link(call: Call, place: Path) -> None:
    (place / "real.txt").write_text("a\n")
    (place / "link.txt").symlink_to("real.txt")
    assert (await call("readFile", path="link.txt")).text == "a\n"
    edits = [{"old": "a", "new": "b"}]
    assert code(await call("edit_file", path="link.txt", edits=edits)) == "path_refused"
    assert (place / "real.txt").read_text() == "a\n"


async def test_move_and_delete(call: Call, place: Path) -> None:
    await call("writeFile", path="a.txt", content="x")
    moved = await call("move_file", path="a.txt", to="sub/b.txt")
    assert moved.changes == (FileChange("a.txt", "x", None), FileChange("sub/b.txt", None, "x"))
    assert (await call("deleteFile", path="sub/b.txt")).text == "deleted sub/b.txt"
    assert code(await call("delete_file", path="sub/b.txt")) == "not_found"


@pytest.mark.case(80)
@pytest.mark.contract("N28")
async def test_the_users_edit_meanwhile_is_kept(call: Call, place: Path) -> None:
    (place / "a.txt").write_text("one\n")
    await call("readFile", path="a.txt")
    (place / "a.txt").write_text("the user's\n")
    for result in (
        await call("editFile", path="a.txt", new_content="mine\n"),
        await call("edit_file", path="a.txt", edits=[{"old": "one", "new": "mine"}]),
    ):
        assert code(result) == "changed"
        assert "since it was read:\n@@ -1 +1 @@\n-one\n+the user's\n" in result.text
        assert "not written:\n@@ -1 +1 @@\n-one\n+mine" in result.text
    assert (place / "a.txt").read_text() == "the user's\n"


@pytest.mark.case(46)
async def test_a_stale_hash(call: Call, place: Path) -> None:
    (place / "a.txt").write_text("the user's")
    stale = hashlib.sha256(b"old").hexdigest()
    write = {"path": "a.txt", "content": "mine", "mode": "overwrite"}
    refused = await call("write_file", if_match=stale, **write)
    assert code(refused) == "changed"
    assert (place / "a.txt").read_text() == "the user's"
    fresh = hashlib.sha256(b"the user's").hexdigest()
    assert (await call("write_file", if_match=fresh, **write)).ok


@pytest.mark.contract("N20")
async def test_existence_is_checked_before_asking_and_again_after(
    toolbox: Toolbox, place: Path
) -> None:
    asked: list[ApprovalQuestion] = []

    async def slow_user(question: ApprovalQuestion) -> ApprovalAnswer:
        asked.append(question)
        (place / "a.txt").write_text("quicker")
        return ApprovalAnswer(allowed=True, by="test")

    asking = toolbox.behind(Gate(lambda tool, arguments, caller: "ask", slow_user))
    arguments = {"path": "a.txt", "content": "late"}
    assert code(await asking.call("writeFile", arguments, CALLER)) == "exists"
    assert asked[0].changes == (FileChange("a.txt", None, "late"),)
    assert code(await asking.call("writeFile", arguments, CALLER)) == "exists"
    assert len(asked) == 1
    assert (place / "a.txt").read_text() == "quicker"


@pytest.mark.contract("N2", "N30")
async def test_japanese(call: Call, place: Path) -> None:
    await call("writeFile", path="日本語/挨拶.py", content="挨拶 = 'こんにちは'\n")
    edits = [{"old": "こんにちは", "new": "さようなら"}]
    assert (await call("edit_file", path="日本語/挨拶.py", edits=edits)).ok
    found = await call("searchInDirectory", directory="日本語", keyword="さようなら")
    assert found.data == ["日本語/挨拶.py"]


async def test_a_search_that_found_more_says_so_to_programs(
    call: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evercontext.files.text_search.MAX_RESULTS", 1)
    for name in ("a.py", "b.py"):
        (place / name).write_text("needle")
    found = await call("search_files", directory=".", keyword="needle")
    assert found.data == {"result": ["a.py"], "truncated": True}


def test_waiting_for_its_turn_is_no_part_of_a_searchs_time(toolbox: Toolbox) -> None:
    """X10: on a busy machine the last of 24 searches was given up before it had begun."""
    assert toolbox.find("search_files").timeout >= 33 * MOST_SECONDS
    assert toolbox.find("list_files").timeout >= 33 * MOST_SECONDS
