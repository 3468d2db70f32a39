from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.events.log import EventLog
from evercontext.index.code_search import CodeIndex
from evercontext.index.tools import index_tools
from evercontext.tools.toolbox import Toolbox
from tests.index.world import SHOP, opened, write

CALLER = Caller("00000000-0000-4000-8000-000000000001", Door.REST)


class _Open:
    def __init__(self, index: CodeIndex) -> None:
        self.index = index

    async def __call__(self, caller: Caller) -> CodeIndex:
        return self.index


async def _call(
    index: CodeIndex, log: EventLog, name: str, mode: Mode = Mode.AGENT, **arguments: Any
) -> ToolResult:
    toolbox = Toolbox(index_tools(_Open(index), log), log)
    caller = Caller(CALLER.trace_id, CALLER.door, mode)
    return await toolbox.call(name, arguments, caller)


@pytest.mark.contract("E17", "E18", "E19", "E46")
async def test_ingest_search_prune(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    log = EventLog(tmp_path / "traces")
    async with opened(tree) as index:
        done = await _call(index, log, "ingest", paths=list(SHOP))
        assert done.data["status"] == "ok"
        assert done.data["added"] == len(SHOP)
        found = await _call(
            index,
            log,
            "search_code",
            query="charge card",
            top_k=1,
            filters={"path_prefix": "shop/"},
        )
        (chunk,) = found.data["chunks"]
        assert chunk["path"] == "shop/payment.py"
        assert chunk["span"] == f"L{chunk['start_line']}-L{chunk['end_line']}"
        assert "def charge" in chunk["text"]
        assert 0 <= chunk["score"] <= 1
        gone = await _call(index, log, "prune", paths=["./shop/payment.py"])
        assert gone.data["deleted"] == 1
    log.close()
    texts = [file.read_text("utf-8") for file in (tmp_path / "traces").rglob("*.jsonl")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    evidence = [line["data"] for line in lines if line["type"] == "evidence"]
    assert evidence[0]["paths"] == ["shop/payment.py"]
    assert {line["trace_id"] for line in lines} == {CALLER.trace_id}
    assert [line["data"]["added"] for line in lines if line["type"] == "indexed"] == [len(SHOP), 0]


@pytest.mark.contract("E17", "E39")
async def test_a_diff_with_a_rename_moves_metadata_only(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    log = EventLog(tmp_path / "traces")
    async with opened(tree) as index:
        await index.update()
        (tree / "shop/cart.py").rename(tree / "shop/basket.py")
        write(tree, {"shop/tax.py": "def vat(): pass\n"})
        (tree / "README.md").unlink()
        diff = {
            "added": ["shop/tax.py"],
            "modified": [],
            "deleted": ["README.md"],
            "renamed": [{"from": "shop/cart.py", "to": "shop/basket.py"}],
        }
        done = await _call(index, log, "ingest", diff=diff)
        assert (done.data["added"], done.data["deleted"], done.data["renamed"]) == (2, 2, 1)
        assert {"shop/basket.py", "shop/tax.py"} <= set(await index.table.rows())
        assert "shop/cart.py" not in await index.table.rows()
    log.close()


@pytest.mark.parametrize(
    "arguments", [{}, {"paths": ["a"], "diff": {}}, {"paths": "a"}, {"diff": {"moved": []}}]
)
async def test_a_wrong_ingest_is_refused(tmp_path: Path, arguments: dict[str, Any]) -> None:
    log = EventLog(tmp_path / "traces")
    (tmp_path / "tree").mkdir()
    async with opened(tmp_path / "tree") as index:
        done = await _call(index, log, "ingest", **arguments)
    log.close()
    assert done.error is not None
    assert done.error.code == "invalid_arguments"


async def test_plan_mode_searches_and_ingests_nothing(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    log = EventLog(tmp_path / "traces")
    async with opened(tree, tmp_path / "elsewhere") as index:
        found = await _call(index, log, "search_code", Mode.PLAN, query="cart")
        assert found.ok
        refused = await _call(index, log, "ingest", Mode.PLAN, paths=["shop/cart.py"])
        assert refused.error is not None
        assert refused.error.code == "mode_refused"
    log.close()


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "a\0b.py", "~/x.py", "-x"])
async def test_no_path_leads_outside(tmp_path: Path, path: str) -> None:
    tree = write(tmp_path / "tree", SHOP)
    write(tmp_path, {"outside.py": "def secret_outside(): pass\n"})
    log = EventLog(tmp_path / "traces")
    async with opened(tree) as index:
        done = await _call(index, log, "ingest", paths=[path])
        assert done.error is not None or done.data["added"] == 0
        assert path not in await index.table.rows()
    log.close()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x", "path_escapes_root"),
        ("shop/../../x", "path_escapes_root"),
        ("/etc/passwd", "path_escapes_root"),
        ("a\0b", "path_refused"),
        ("", "path_refused"),
        (".env", "protected_path"),
        ("shop/.git/config", "protected_path"),
    ],
)
@pytest.mark.contract("E17", "E18")
async def test_a_path_that_may_not_be_entered_refuses_the_call(
    tmp_path: Path, path: str, code: str
) -> None:
    tree = write(tmp_path / "tree", SHOP)
    log = EventLog(tmp_path / "traces")
    async with opened(tree) as index:
        await index.update(["README.md"])
        given: list[tuple[str, dict[str, Any]]] = [
            ("ingest", {"paths": ["shop/cart.py", path]}),
            ("ingest", {"diff": {"added": ["shop/cart.py"], "deleted": [path]}}),
            ("ingest", {"diff": {"renamed": [{"from": "README.md", "to": path}]}}),
            ("prune", {"paths": ["README.md", path]}),
        ]
        for name, arguments in given:
            done = await _call(index, log, name, **arguments)
            assert done.error is not None
            assert done.error.code == code
        assert set(await index.table.rows()) == {"README.md"}
    log.close()
