"""What an edition no longer offers is noticed: a command, an option, a key, a public name."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from tests.test_repository import HERE


@pytest.fixture
def script() -> ModuleType:
    path = HERE / "scripts/compare_editions.py"
    spec = importlib.util.spec_from_file_location("compare_editions", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _edition(**changed: Any) -> dict[str, Any]:
    return {
        "commands": {"evercontext run": {"options": ["--task"], "help": ["Do one task."]}},
        "names": {"evercontext": ["Settings"]},
        "answers": {"search": [".chunks[].path: text", ".stale: bool"]},
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "kind", "row"),
    [
        ({"commands": {}}, "commands", "evercontext run"),
        (
            {"commands": {"evercontext run": {"options": [], "help": []}}},
            "options",
            "evercontext run --task",
        ),
        ({"names": {"evercontext": []}}, "public names", "evercontext.Settings"),
        (
            {"answers": {"search": [".stale: bool"]}},
            "JSON keys",
            "search  .chunks[].path: text",
        ),
        (
            {"answers": {"search": [".chunks[].path: number", ".stale: bool"]}},
            "JSON keys",
            "search  .chunks[].path: text (now number)",
        ),
    ],
)
def test_what_is_gone_is_listed(
    script: ModuleType, changed: dict[str, Any], kind: str, row: str
) -> None:
    gone, _ = script.compare(_edition(), _edition(**changed), [])
    assert gone[kind] == [row]


def test_what_is_added_or_empty_now_is_not_gone(script: ModuleType) -> None:
    more = {"search": [".chunks: null", ".stale: bool", ".note: text"]}
    gone, added = script.compare(_edition(), _edition(answers=more), [])
    assert not any(gone.values())
    assert "search  .note: text" in added["JSON keys"]


def test_an_edition_describes_its_commands_and_names(script: ModuleType) -> None:
    described = script.describe()
    assert "--json" in described["commands"]["evercontext search"]["options"]
    assert "evercontext hook install" in described["commands"], "the former name is an alias"
    assert "KanaAIBridge" in described["names"]["evercontext"]
    assert "evercontext.agent.loop" in described["modules"]
