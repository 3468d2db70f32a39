from __future__ import annotations

import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evercontext import plugins
from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.errors import ConfigError


def install(folder: Path, name: str, source: str) -> None:
    """Put a package with one plugin where a path of Python leads."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[evercontext.tools]\n{name} = {name}:TOOLS\n")


def test_an_installed_package_is_found_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "shiny", "TOOLS = ['a tool']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins.installed("tools")
    assert plugins.load(found["shiny"]) == ["a tool"]
    assert "shiny" not in plugins.installed("models")
    sys.modules.pop("shiny", None)


@pytest.mark.parametrize("value", ["no_such_module_here:x", "json:no_such_attribute"])
def test_a_broken_plugin_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match="the plugin broken"):
        plugins.load(EntryPoint("broken", value, "evercontext.tools"))


def test_what_is_installed_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X8: a look reads the names of all packages, and one process needs it once."""
    install(tmp_path, "dull", "TOOLS = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = plugins.installed("tools")
    install(tmp_path, "later", "TOOLS = []\n")
    assert plugins.installed("tools") is first
    assert "dull" in first


async def test_plugins_are_loaded_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X8: what a package does when it is imported keeps nobody waiting."""
    install(tmp_path, "slow", "import threading\nLOADER = threading.get_ident()\nTOOLS = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "project").mkdir()
    environment = {"EC_HOME": str(tmp_path / "home")}
    flags = {"root": str(tmp_path / "project")}
    settings = sources.load(flags, environment=environment, cwd=tmp_path)
    async with EverContext.open(settings):
        loader = sys.modules.pop("slow").LOADER
    assert loader != threading.get_ident()
