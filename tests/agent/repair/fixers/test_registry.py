"""What each fixer proposes for one failure, in a project on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.agent.repair.fixers import (
    attributes,
    files,
    javascript,
    modules,
    names,
    rust,
    style,
)
from evercontext.agent.repair.fixers.registry import FIXERS, Fixer, propose
from evercontext.agent.repair.project_view import ProjectView
from evercontext.domain.tool import Caller, Door
from evercontext.workspace.failures.failure import CodeLine, Failure, Hint

Look = Callable[[Mapping[str, str]], Awaitable[ProjectView]]


@asynccontextmanager
async def project(folder: Path, contents: Mapping[str, str]) -> AsyncIterator[ProjectView]:
    root = folder / "project"
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    async with testing.house(folder) as app:
        caller = Caller("t", Door.RUN)
        yield ProjectView(app.workspace, app.toolbox, caller, str(root.resolve()))


async def mended(
    folder: Path, contents: Mapping[str, str], fixer: Fixer, failure: Failure
) -> dict[str, str]:
    """The first thing that a fixer would do."""
    async with project(folder, contents) as view:
        found = await fixer(failure, view)
    return dict(found[0].files) if found else {}


def named(message: str, file: str = "shop/a.py", line: int = 3, **more: object) -> Failure:
    return Failure("pytest", "name", message, file, line, **more)  # type: ignore[arg-type]


async def test_a_name_is_imported_as_the_project_imports_it(tmp_path: Path) -> None:
    contents = {
        "shop/__init__.py": "",
        "shop/a.py": "import os\n\n\ndef f():\n    return 合計(os)\n",
        "shop/b.py": "def 合計(x):\n    return x\n",
        "shop/c.py": "from shop.b import 合計\n",
    }
    failure = named("NameError: name '合計' is not defined")
    made = await mended(tmp_path, contents, names.missing_import, failure)
    assert made["shop/a.py"].startswith("import os\n\nfrom shop.b import 合計\n\n\ndef f")


async def test_a_name_is_imported_from_python_itself(tmp_path: Path) -> None:
    contents = {"a.py": "# はじめ\nx = Path('.')\n"}
    failure = named("Undefined name `Path`", "a.py")
    made = await mended(tmp_path, contents, names.missing_import, failure)
    assert made["a.py"] == "# はじめ\nfrom pathlib import Path\n\nx = Path('.')\n"


async def test_a_name_that_nobody_has_is_left_alone(tmp_path: Path) -> None:
    failure = named("NameError: name 'quux' is not defined", "a.py")
    for fixer in FIXERS:
        assert await mended(tmp_path, {"a.py": "print(quux)\n"}, fixer, failure) == {}


@pytest.mark.parametrize(
    ("source", "message", "fixer", "right"),
    [
        (
            "class A:\n    def f(x):\n        return x\n",
            "A.f() takes 1 positional argument but 2 were given",
            names.missing_self,
            "def f(self, x):",
        ),
        (
            "class A:\n    def f():\n        return 1\n",
            "A.f() takes 0 positional arguments but 1 was given",
            names.missing_self,
            "def f(self):",
        ),
        (
            "class A:\n    def f(self):\n        self.items = 1\n        return self.itmes\n",
            "'A' object has no attribute 'itmes'",
            attributes.misspelt_attribute,
            "return self.items",
        ),
        (
            "x = 'a'\ny = x.uper()\n",
            "'str' object has no attribute 'uper'",
            attributes.misspelt_attribute,
            "x.upper()",
        ),
        (
            "import math\nmath.flor(1)\n",
            "module 'math' has no attribute 'flor'",
            attributes.misspelt_attribute,
            "math.floor(1)",
        ),
        (
            "def f(count=1):\n    return count\nf(cuont=2)\n",
            "f() got an unexpected keyword argument 'cuont'",
            attributes.misspelt_keyword,
            "f(count=2)",
        ),
        (
            "import jsno\njsno.loads('1')\n",
            "No module named 'jsno'",
            modules.wrong_module,
            "import json",
        ),
        (
            "import os, sys\nprint(os)\n",
            "`sys` imported but unused",
            style.unused_import,
            "import os\n",
        ),
    ],
)
async def test_slips_in_one_file(
    tmp_path: Path, source: str, message: str, fixer: Fixer, right: str
) -> None:
    line = 1 if fixer is style.unused_import else 3
    failure = named(message, "a.py", line)
    assert right in (await mended(tmp_path, {"a.py": source}, fixer, failure))["a.py"]


async def test_a_module_is_found_where_it_is(tmp_path: Path) -> None:
    contents = {
        "src/shop/__init__.py": "",
        "src/shop/deep/__init__.py": "",
        "src/shop/deep/tool.py": "x = 1\n",
        "src/shop/a.py": "from .tool import x\n",
    }
    failure = named("No module named 'shop.tool'", "src/shop/a.py", 1)
    made = await mended(tmp_path, contents, modules.wrong_module, failure)
    assert made == {"src/shop/a.py": "from .deep.tool import x\n"}


async def test_two_modules_that_import_each_other(tmp_path: Path) -> None:
    contents = {
        "shop/__init__.py": "",
        "shop/a.py": "from shop.b import g\n\n\ndef f():\n    return g()\n",
        "shop/b.py": "from shop.a import f\n\n\ndef g():\n    return f\n",
    }
    message = "cannot import name 'f' from partially initialized module 'shop.a' (most likely …)"
    made = await mended(tmp_path, contents, modules.circular_import, named(message, "shop/b.py", 1))
    assert made["shop/b.py"].lstrip() == ("def g():\n    from shop.a import f\n\n    return f\n")


async def test_an_empty_package_file_is_made(tmp_path: Path) -> None:
    contents = {"shop/sub/a.py": "x = 1\n", "shop/__init__.py": ""}
    failure = Failure(
        "ruff", "lint", "part of an implicit namespace package", "shop/sub/a.py", 1, code="INP001"
    )
    assert await mended(tmp_path, contents, modules.missing_package, failure) == {
        "shop/sub/__init__.py": ""
    }


async def test_a_definition_is_renamed_where_a_test_asks_for_it(tmp_path: Path) -> None:
    contents = {
        "shop/__init__.py": "",
        "shop/a.py": "def totl():\n    return 1\n",
        "shop/b.py": "from shop.a import totl\n",
        "tests/test_a.py": "from shop.a import total\n",
    }
    where = tmp_path / "project" / "shop" / "a.py"
    failure = named(f"cannot import name 'total' from 'shop.a' ({where})", "tests/test_a.py", 1)
    made = await mended(tmp_path, contents, attributes.misspelt_import, failure)
    assert made == {
        "shop/a.py": "def total():\n    return 1\n",
        "shop/b.py": "from shop.a import total\n",
    }


async def test_a_file_is_opened_under_its_name(tmp_path: Path) -> None:
    contents = {"a.py": "open('data/prces.json')\n", "data/prices.json": "{}\n"}
    failure = Failure(
        "pytest",
        "file",
        "[Errno 2] No such file or directory: 'data/prces.json'",
        "a.py",
        1,
        frames=(CodeLine("a.py", 1),),
    )
    made = await mended(tmp_path, contents, files.wrong_path, failure)
    assert made == {"a.py": "open('data/prices.json')\n"}


@pytest.mark.parametrize(
    ("source", "message", "fixer", "right"),
    [
        (
            'export const x = 1;\njoin("a");\n',
            "ReferenceError: join is not defined",
            javascript.missing_import,
            'import { join } from "node:path";',
        ),
        (
            "const fs2 = 1\nmodule.exports = fs.x\n",
            "ReferenceError: fs is not defined",
            javascript.missing_import,
            'const fs = require("node:fs")',
        ),
        (
            'import x from "./bb.js";\n',
            "Cannot find module './bb.js'",
            javascript.wrong_module,
            'from "./b.js"',
        ),
    ],
)
async def test_slips_in_javascript(
    tmp_path: Path, source: str, message: str, fixer: Fixer, right: str
) -> None:
    contents = {"src/a.js": source, "src/b.js": "export default 1;\n"}
    failure = Failure("node", "name", message, "src/a.js", 2)
    assert right in (await mended(tmp_path, contents, fixer, failure))["src/a.js"]


async def test_what_rustc_proposes_is_done_only_where_it_fits(tmp_path: Path) -> None:
    hint = (Hint(2, "    found", "    fuond"),)
    failure = Failure("rust", "name", "cannot find value", "src/a.rs", 2, hints=hint)
    good = {"src/a.rs": "fn f() {\n    fuond\n}\n"}
    made = await mended(tmp_path, good, rust.compiler_hint, failure)
    assert made == {"src/a.rs": "fn f() {\n    found\n}\n"}
    assert rust.applied("fn f() {\n    other\n}\n", hint) is None


@pytest.mark.parametrize(
    ("failure", "command"),
    [
        (
            Failure("go", "import", '"os" imported and not used', "shop/a.go", 4),
            "goimports -w shop/a.go",
        ),
        (Failure("go", "name", "undefined: strings", "a.go", 3), "goimports -w a.go"),
        (Failure("check", "error", "Missing semicolon", "a.ts", 3), "eslint --fix --quiet a.ts"),
        (
            Failure("rust", "lint", "unused import", "src/a.rs", 3),
            "cargo fix --quiet --allow-dirty --allow-no-vcs",
        ),
        (Failure("go", "assertion", "want 2", "a_test.go", 3), None),
        (Failure("node", "error", "Error: no", "a.js", 3), None),
    ],
)
async def test_the_languages_own_fixer_is_run_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Failure, command: str | None
) -> None:
    programs = tmp_path / "bin"
    async with project(tmp_path, {"go.mod": "module shop\n"}) as view:
        monkeypatch.setenv("PATH", str(programs))
        assert await style.ecosystem_fix(failure, view) == []
        programs.mkdir()
        for name in ("goimports", "eslint", "cargo"):
            (programs / name).write_text("#!/bin/sh\n")
            (programs / name).chmod(0o755)
        proposals = await style.ecosystem_fix(failure, view)
    expected = [] if command is None else [{"command": f"{programs}/{command}"}]
    assert [dict(proposal.arguments) for proposal in proposals] == expected


async def test_every_failure_is_given_its_ways_once(tmp_path: Path) -> None:
    one = named("Undefined name `json`", "a.py")
    unformatted = Failure("format", "format", "is not formatted", "a.py", code="format")
    async with project(tmp_path, {"a.py": "json.loads('1')\n"}) as view:
        found = await propose([one, unformatted], view)
    assert [[way.by for way in ways] for _, ways in found] == [["missing import"], ["formatter"]]
    assert found[1][1][0].arguments == {"paths": ["a.py"]}
