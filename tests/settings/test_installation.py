"""Commands that fit the way this copy was installed; S7."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.settings.installation import Installation, detect, requirements_of

RECEIPT = """[tool]
requirements = [{ name = "evercontext"%s }]
entrypoints = [{ name = "evercontext", install-path = "/x", from = "evercontext" }]
"""


def uv_tool(prefix: Path, more: str = "") -> Installation:
    (prefix / "uv-receipt.toml").write_text(RECEIPT % more)
    return detect(prefix)


def test_uv_tool(tmp_path: Path) -> None:
    plain = uv_tool(tmp_path)
    assert plain.hint("embedded") == "uv tool install 'evercontext[embedded]'"
    assert plain.upgrade() == "uv tool upgrade evercontext"
    assert plain.remove() == "uv tool uninstall evercontext"
    again = uv_tool(tmp_path, ', extras = ["postgres"]')
    assert again.hint("embedded") == "uv tool install 'evercontext[embedded,postgres]'"
    local = uv_tool(tmp_path, ', directory = "/home/me/my code"')
    assert shlex.split(local.hint("embedded"))[-1] == "/home/me/my code[embedded]"
    (tmp_path / "uv-receipt.toml").write_text("{")
    assert detect(tmp_path).way == "uv tool"


def test_pipx(tmp_path: Path) -> None:
    record = {"main_package": {"package": "evercontext", "package_or_url": "evercontext[postgres]"}}
    (tmp_path / "pipx_metadata.json").write_text(json.dumps(record))
    found = detect(tmp_path)
    assert (found.way, found.source, found.extras) == ("pipx", "evercontext", ("postgres",))
    assert found.hint("embedded") == shlex.join(
        ["pipx", "inject", "evercontext", *requirements_of("embedded")]
    )
    assert requirements_of("embedded")[0].startswith("xllamacpp")
    (tmp_path / "pipx_metadata.json").write_text("[]")
    assert detect(tmp_path).way == "pipx"


def test_uvx(tmp_path: Path) -> None:
    prefix = tmp_path / "uv" / "archive-v0" / "ntxl9YVn8pQNVMGm"
    prefix.mkdir(parents=True)
    found = detect(prefix)
    assert found.hint("embedded") == "uvx --from 'evercontext[embedded]' evercontext"


@pytest.mark.parametrize(
    ("direct", "has_pip", "hint"),
    [
        (None, True, "python -m pip install 'evercontext[embedded]'"),
        (None, False, "uv pip install --python python 'evercontext[embedded]'"),
        (
            {"url": "file:///src/ever", "dir_info": {"editable": True}},
            True,
            "python -m pip install --editable '/src/ever[embedded]'",
        ),
        (
            {"url": "file:///src/ever", "dir_info": {}},
            True,
            "python -m pip install '/src/ever[embedded]'",
        ),
        (
            {"url": "file:///a%20b/evercontext-1-py3-none-any.whl", "archive_info": {}},
            True,
            "python -m pip install"
            " 'evercontext[embedded] @ file:///a%20b/evercontext-1-py3-none-any.whl'",
        ),
        (
            {"url": "https://example.org/ever.git", "vcs_info": {"vcs": "git"}},
            True,
            "python -m pip install 'evercontext[embedded] @ git+https://example.org/ever.git'",
        ),
    ],
)
def test_pip(tmp_path: Path, direct: dict[str, Any] | None, has_pip: bool, hint: str) -> None:
    found = replace(detect(tmp_path, direct), python="python", has_pip=has_pip)
    assert found.hint("embedded") == hint


def test_no_message_knows_only_one_way() -> None:
    """Every hint that names an installer comes from this one function."""
    source = Path(__file__).parents[2] / "src" / "evercontext"
    named = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"pip install\W*\s*\W*evercontext", path.read_text("utf-8"))
    ]
    assert named == []
