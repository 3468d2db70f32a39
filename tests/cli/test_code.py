from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from evercontext.cli.code import command
from evercontext.errors import PathEscape, UsageError
from tests.index.structure.world import PYTHON
from tests.index.world import write


def _run(root: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, [*arguments, "--root", str(root)], standalone_mode=False)
    assert done.exception is None, done.output
    return int(done.return_value), done.output


def test_each_question_has_a_command_with_text_and_json(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    code, text = _run(tmp_path, "callers", "Cart.add")
    assert code == 0
    assert "shop/checkout.py:14 [type] in pay | cart.add(cost(1))" in text
    code, text = _run(tmp_path, "definition", "Cart", "--json")
    assert json.loads(text)["definitions"][0]["signature"] == "class Cart(Base)"
    code, text = _run(tmp_path, "outline", "shop/cart.py")
    assert "class Cart(Base)" in text
    code, text = _run(tmp_path, "map", "--budget", "100", "--json")
    assert json.loads(text)["tokens"] <= 100


def test_files_may_be_named_absolutely(tmp_path: Path) -> None:
    """P15: inside the root, everywhere."""
    write(tmp_path, PYTHON)
    plain = _run(tmp_path, "outline", "shop/cart.py")
    assert plain[0] == 0
    assert _run(tmp_path, "outline", f"{tmp_path}/shop/cart.py") == plain
    assert _run(tmp_path, "outline", "shop/../shop/cart.py") == plain
    for question, name in (("callers", "Cart.add"), ("importers", "shop/cart.py")):
        narrow = _run(tmp_path, question, name, "--path", "shop")
        if name.endswith(".py"):
            name = f"{tmp_path}/{name}"
        assert _run(tmp_path, question, name, "--path", f"{tmp_path}/shop") == narrow
    drawn = _run(tmp_path, "map", "--path-prefix", "shop/")
    assert drawn[0] == 0
    assert _run(tmp_path, "map", "--path-prefix", f"{tmp_path}/shop/") == drawn
    outside = CliRunner().invoke(command, ["outline", "/etc/passwd.py", "--root", str(tmp_path)])
    assert isinstance(outside.exception, PathEscape)


def test_a_map_says_what_had_no_room(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    _, text = _run(tmp_path, "map", "--budget", "50")
    assert re.search(r"^\(a larger budget shows \d+ .*, too\)$", text, re.MULTILINE)
    _, whole = _run(tmp_path, "map", "--budget", "20000")
    assert "a larger budget" not in whole


def test_nothing_found_is_exit_code_1(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    code, text = _run(tmp_path, "references", "warehouse")
    assert code == 1
    assert "references of warehouse: 0" in text
    code, text = _run(tmp_path, "callers", "Cart", "--path", "elsewhere")
    assert (code, text) == (1, "callers of Cart: 0\n(not defined below elsewhere)\n")
    code, text = _run(tmp_path, "map", "--path-prefix", "elsewhere")
    assert (code, text) == (1, "nothing is defined here\n")


def test_an_empty_name_is_wrong_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["definition", " ", "--root", str(tmp_path)])
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize("name", sorted(command.commands))
def test_every_command_teaches_its_use(name: str) -> None:
    done = CliRunner().invoke(command, [name, "--help"])
    assert done.exit_code == 0
    assert "--json" in done.output
