from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evercontext import plugins
from evercontext.errors import ConfigError


def test_an_installed_package_is_found_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shiny.py").write_text("TOOLS = ['a tool']\n")
    info = tmp_path / "shiny-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shiny\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[evercontext.tools]\nshiny = shiny:TOOLS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins.installed("tools")
    assert plugins.load(found["shiny"]) == ["a tool"]
    assert "shiny" not in plugins.installed("models")
    sys.modules.pop("shiny", None)


@pytest.mark.parametrize("value", ["no_such_module_here:x", "json:no_such_attribute"])
def test_a_broken_plugin_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match="the plugin broken"):
        plugins.load(EntryPoint("broken", value, "evercontext.tools"))
