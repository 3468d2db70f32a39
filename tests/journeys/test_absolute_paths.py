"""Absolute paths: inside the root they are taken by every tool, outside they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.domain.event import Step
from evercontext.domain.tool import Caller, Door, ToolResult


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = (tmp_path / "project").resolve()
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "other.txt").write_text("not yours\n")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "alias").symlink_to(root)
    return root


@pytest.mark.contract("E9")
@pytest.mark.case(18)
@pytest.mark.parametrize("door", [Door.CHAT, Door.REST, Door.MCP])
async def test_paths_inside_the_root_are_taken_and_others_refused(
    project: Path, tmp_path: Path, door: Door
) -> None:
    """P15: agents and editors name files absolutely by habit."""
    environment = {"EC_HOME": str(tmp_path / "home")}
    settings = sources.load({"root": str(project)}, environment=environment, cwd=tmp_path)
    async with EverContext.open(settings) as app:
        steps: list[Step] = []
        app.events.subscribe(
            lambda event: steps.append(event.body) if isinstance(event.body, Step) else None
        )

        async def call(name: str, **arguments: Any) -> ToolResult:
            return await app.toolbox.call(name, arguments, Caller("t" * 8, door))

        for place in (project, tmp_path / "alias"):
            read = await call("read_file", path=f"{place}/src/a.py")
            assert read.ok, read.text
            assert steps[-1].arguments["path"] == "src/a.py"
        listed = await call("list_files", path=str(project))
        assert listed.ok, listed.text
        assert (await call("search_files", directory=f"{project}/src", keyword="x = 1")).ok
        written = await call("write_file", path=f"{project}/b.py", content="", mode="create")
        assert written.ok, written.text
        assert (project / "b.py").is_file()
        for outside in (
            "/etc/hostname",
            str(tmp_path / "other.txt"),
            f"{project}/../other.txt",
            f"{project}/src/../../other.txt",
            f"{project}x/a.py",
            f"{project}/out/other.txt",
        ):
            refused = await call("read_file", path=outside)
            assert refused.error is not None, outside
            assert refused.error.code in ("path_escapes_root", "path_refused", "not_found"), outside
