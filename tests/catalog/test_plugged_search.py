"""A search for tools that an installed package brings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evercontext import settings as sources
from evercontext.access.router_projects import Projects, RouterProject
from evercontext.app import EverContext
from evercontext.catalog.plugged_search import PluggedSearch, installed_searches
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.domain.tool import Caller, Door
from evercontext.errors import ServerProblem
from evercontext.server.exposed_tools import router_toolbox
from evercontext.settings import Settings
from tests.cli.command import evercontext

PACKAGE = """
import asyncio


class ByLength:
    def __init__(self, settings):
        self.root = settings.root

    async def search(self, queries, entries, limit, context):
        if "wait" in queries:
            await asyncio.sleep(3600)
        if "fail" in queries:
            raise KeyError("no such word")
        shortest = sorted(entries, key=lambda entry: (len(entry.name), entry.name))
        named = [{"toolKey": entry.key, "relevance": 0.5, "explanation": "short"}
                 for entry in shortest]
        return [{"toolKey": "secret:tool", "relevance": 9}, *named]


def open_by_length(settings):
    return ByLength(settings)


async def open_later(settings):
    return ByLength(settings)
"""
POINTS = """
[evercontext.search]
by_length = length_search:open_by_length
later = length_search:open_later
absent = length_search:nothing
hybrid = length_search:open_by_length
"""
ENTRIES = [CatalogEntry(f"one:{name}", "one", name) for name in ("echo", "go", "environment")]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package as pip leaves it in a folder of Python's path."""
    folder = tmp_path / "packages"
    info = folder / "length_search-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "length_search.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: length-search\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("length_search", None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "project").mkdir()
    environment = {"EC_HOME": str(tmp_path / "home")}
    flags = {"root": str(tmp_path / "project")}
    return sources.load(flags, environment=environment, cwd=tmp_path)


async def names(provider: PluggedSearch, query: str = "x", limit: int = 2) -> list[str]:
    results = await provider.search([query], ENTRIES, limit, None)
    return [result["toolKey"] for result in results]


@pytest.mark.contract("T25")
@pytest.mark.parametrize("name", ["by_length", "later"])
async def test_an_installed_package_searches(package: Path, settings: Settings, name: str) -> None:
    """C8: its order counts, and a tool that it made up is left out."""
    assert installed_searches() == ["absent", "by_length", "later"]
    assert await names(PluggedSearch(name, settings)) == ["one:go", "one:echo"]


@pytest.mark.parametrize(
    ("name", "query", "reason"),
    [
        ("by_length", "fail", "the search by_length failed (KeyError: 'no such word')"),
        ("by_length", "wait", "the search by_length took more than 0.5 s"),
        ("absent", "x", "the plugin absent (length_search:nothing) cannot be loaded"),
        ("removed", "x", "no installed package offers the search removed"),
    ],
)
async def test_one_that_cannot_answer_says_why(
    package: Path, settings: Settings, name: str, query: str, reason: str
) -> None:
    with pytest.raises(ServerProblem) as problem:
        await names(PluggedSearch(name, settings, seconds=0.5), query)
    assert reason in str(problem.value)


@pytest.mark.contract("T20", "T25")
async def test_a_project_chooses_it_and_is_served_without_it(
    package: Path, settings: Settings
) -> None:
    async def discover(app: EverContext, query: str) -> dict[str, Any]:
        caller = Caller("t" * 8, Door.MCP)
        box = router_toolbox(app.toolbox, app.catalog, allow_commands=False)
        result = await box.call("tool_discovery", {"query": query}, caller)
        answer: dict[str, Any] = result.data
        return answer

    async with EverContext.open(settings) as app:
        projects = Projects(app.store)
        await projects.put(RouterProject("web", str(settings.root.resolve()), "by_length"))
        assert (await projects.get("web")).optimization == "by_length"
        answer = await discover(app, "read a file")
        lengths = [len(result["toolKey"].partition(":")[2]) for result in answer["results"]]
        assert lengths == sorted(lengths)
        assert answer["results"][0]["explanation"] == "short"
        assert "inputSchema" in answer["results"][0]
        await projects.put(RouterProject("web", str(settings.root.resolve()), "removed"))
        local = await discover(app, "read a file")
        assert "offers the search removed: searched here instead" in local["notice"]
        assert local["results"]


def test_the_command_line_takes_only_what_is_there(package: Path, tmp_path: Path) -> None:
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(package), *([before] if before else [])])
    arguments = ("projects", "create", "web", "--optimization", "by_length")
    refused = evercontext(*arguments)
    assert refused.code == 64
    assert "there is no search 'by_length'" in refused.err
    assert "hybrid, bm25, cloud, null" in refused.err
    created = evercontext(*arguments, env={"PYTHONPATH": path})
    assert created.err == "created web  by_length\n"
