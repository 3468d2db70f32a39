"""Names say what they hold: rules for variables, classes, modules and the words of the source."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.test_repository import HERE, SOURCE, python_files, relative, text_files, tree

VAGUE = {
    "asked",
    "found",
    "given",
    "heard",
    "kept",
    "made",
    "meant",
    "one",
    "said",
    "told",
    "wanted",
    "whole",
}
STORED_NAMES = {
    "src/evercontext/domain/event.py: kept": "a field of events that stored logs have",
}
METAPHORS = re.compile(r"\b(?:house|cages?|caged|mend|mends|mended|mending|eras?|dear)\b", re.I)
FORMER_NAMES = {"renamed.py": "former modules", "testing.py": "a former helper of users' tests"}
PLURAL_TWINS: dict[str, str] = {}
SHARED_CLASS_NAMES: dict[str, str] = {}


def test_no_variable_argument_field_or_function_has_a_vague_name() -> None:
    vague = {
        f"{relative(path)}: {name}"
        for path in python_files(SOURCE)
        for name in _bound_names(tree(path))
        if name.strip("_").lower() in VAGUE
    }
    assert sorted(vague - STORED_NAMES.keys()) == []
    assert STORED_NAMES.keys() - vague == set(), "an exemption that is no longer needed"


def _bound_names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name


@pytest.mark.parametrize(
    "line",
    [
        "found = 1",
        "def f(told): ...",
        "for one in x: ...",
        "self._kept = 1",
        "class Found: ...",
        "def _said(): ...",
        "with x as given: ...",
        "[whole for whole in x]",
    ],
)
def test_a_vague_name_is_recognised(line: str) -> None:
    assert {name.strip("_").lower() for name in _bound_names(ast.parse(line))} & VAGUE


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in python_files(SOURCE):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(relative(path))
    shared = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in SHARED_CLASS_NAMES} == {}
    assert SHARED_CLASS_NAMES.keys() - shared.keys() == set(), "an exemption not needed any more"


def test_no_two_modules_of_a_package_differ_by_a_plural_only() -> None:
    modules = {relative(path).removesuffix(".py") for path in python_files(SOURCE)}
    twins = sorted(name for name in modules if f"{name}s" in modules)
    assert [name for name in twins if name not in PLURAL_TWINS] == []


def test_the_source_speaks_without_metaphors() -> None:
    speaking = {
        f"{relative(path)}:{number}: {line.strip()}"
        for path in python_files(SOURCE)
        if path.name not in FORMER_NAMES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if METAPHORS.search(line)
    }
    assert sorted(speaking) == []


def test_the_documentation_speaks_without_metaphors() -> None:
    """Decision records tell what was called so before."""
    speaking = [
        f"{name}: {match[0]}"
        for name, text in text_files()
        if name.endswith(".md") and not name.startswith(("docs/adr/", "training/"))
        for match in METAPHORS.finditer(text)
    ]
    assert speaking == []


def test_the_formatter_lays_out_every_line() -> None:
    marker = "# fmt: " + "skip"
    assert [name for name, text in text_files() if name.endswith(".py") and marker in text] == []


def test_every_package_is_on_the_architecture_page() -> None:
    page = (HERE / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    packages = {path.relative_to(SOURCE).parts[0] for path in python_files(SOURCE)}
    names = {name.removesuffix(".py") for name in packages} - {"__init__", "__main__"}
    rows = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in sorted(names) if f"`{name}`" not in rows] == []


def test_every_layer_is_there() -> None:
    """A layer in parentheses may be missing, and then nobody notices that a package moved."""
    config = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = [layer for contract in contracts for layer in contract.get("layers", [])]
    assert layers
    assert [layer for layer in layers if "(" in layer] == []


def test_every_import_between_packages_goes_down_in_the_picture() -> None:
    """The picture of the architecture page is drawn from the same layers and imports."""
    spec = importlib.util.spec_from_file_location("package_map", HERE / "scripts/package_map.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    order = {name: n for n, layer in enumerate(script.layers()) for name in layer}
    pairs = script.imports()
    assert ("cli", "server") in pairs
    inside = [(a, b) for a, b in pairs if a in order and b in order]
    assert [pair for pair in inside if order[pair[0]] > order[pair[1]]] == []
    assert script.PICTURE.read_text(encoding="utf-8") == script.draw(script.layers(), pairs)
