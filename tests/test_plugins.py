from __future__ import annotations

import os
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evercontext import plugins
from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.errors import ConfigError
from tests.cli.command import evercontext, home
from tests.tiers import slow


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


ECHO = """
from evercontext.domain.model import EndDelta, ModelInfo, TextDelta, Usage


class Echo:
    def __init__(self, model):
        self.info = ModelInfo(f"echo:{model}", 8192)

    async def stream(self, request):
        if self.info.name == "echo:broken":
            raise RuntimeError("no such thing in echo")
        yield TextDelta("echoed by " + self.info.name)
        yield EndDelta("end", Usage(1, 1))

    async def aclose(self):
        pass


def build(model, settings):
    return Echo(model) if model else "nothing"
"""


@pytest.fixture
def echo(tmp_path: Path) -> dict[str, str]:
    """A package with models, installed where the command finds it; returns the environment."""
    folder = tmp_path / "packages"
    folder.mkdir()
    install(folder, "echo_models", ECHO)
    points = folder / "echo_models-1.0.dist-info" / "entry_points.txt"
    points.write_text("[evercontext.models]\necho = echo_models:build\n")
    (tmp_path / "project").mkdir()
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}


def test_an_installed_package_brings_models(tmp_path: Path, echo: dict[str, str]) -> None:
    """V14: the entry point evercontext.models is read; without the package the name is none."""
    project = tmp_path / "project"
    ended = evercontext("run", "-t", "hi", "-m", "echo:one", cwd=project, env=echo)
    assert (ended.code, ended.out) == (0, "echoed by echo:one\n"), ended.err
    listed = evercontext("model", "list", cwd=project, env=echo).out
    assert "offered by the installed package echo_models" in listed
    wrong = evercontext("run", "-t", "hi", "-m", "echo:", cwd=project, env=echo)
    assert wrong.code != 0
    assert "the plugin echo (echo_models:build) returned str, not a model" in wrong.err
    assert evercontext("run", "-t", "hi", "-m", "echo:one", cwd=project).code == 64


@pytest.mark.parametrize("source", ["evercontext.toml", slow("config.json"), slow("EC_DEBUG")])
def test_where_an_unexpected_error_came_from_is_shown_on_request(
    tmp_path: Path, echo: dict[str, str], source: str
) -> None:
    """V14: debug counts wherever it is set."""
    project = tmp_path / "project"
    asked = ("run", "-t", "hi", "-m", "echo:broken", "--root", str(project))
    assert "Traceback" not in evercontext(*asked, cwd=tmp_path, env=echo).err
    if source == "config.json":
        home().mkdir(exist_ok=True)
        (home() / source).write_text('{"debug": true}')
    elif source == "evercontext.toml":
        (project / source).write_text("debug = true\n")
    else:
        echo[source] = "1"
    ended = evercontext(*asked, cwd=tmp_path, env=echo)
    assert "RuntimeError: no such thing in echo" in ended.err
    assert "Traceback" in ended.err
