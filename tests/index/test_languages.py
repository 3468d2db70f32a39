"""Every language that is parsed has its grammar, and no grammar is installed for nothing."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from evercontext.index.languages import grammar_of, language_of

HERE = Path(__file__).parent.parent.parent
QUERIES = sorted(
    item.name.removesuffix(".scm")
    for item in resources.files("evercontext.index").joinpath("queries").iterdir()
)
LARGEST = 200_000_000
"""Bytes of what a base install brings, without this package and without byte code, which would make
50 MB more."""


@pytest.mark.contract("E36")
@pytest.mark.parametrize("language", QUERIES)
def test_a_grammar_takes_its_query(language: str) -> None:
    grammar = grammar_of(language)
    assert grammar is not None
    assert not grammar[0].parse(b"\n").root_node.has_error


def test_what_is_not_parsed_has_no_grammar() -> None:
    for name in ("a.kt", "a.proto", "a.sql", "a.md", "a.unknown"):
        assert grammar_of(language_of(name) or "none") is None


def test_grammars_are_those_that_are_used() -> None:
    """One for each query, under an exact version: another may refuse the query."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [line for line in project["dependencies"] if line.startswith("tree-sitter-")]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)
    shared = {"csharp": "c-sharp", "tsx": "typescript"}
    named = {line.partition("==")[0].removeprefix("tree-sitter-") for line in lines}
    assert named == {shared.get(language, language) for language in QUERIES}


def test_a_base_install_stays_small() -> None:
    seen: dict[str, int] = {}
    waiting = ["evercontext"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen[name] = 0
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another system
        for line in package.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name.lower().replace("_", "-"))
        if name != "evercontext":
            paths = (Path(str(package.locate_file(file))) for file in package.files or ())
            seen[name] = sum(p.stat().st_size for p in paths if p.suffix != ".pyc" and p.is_file())
    largest = sorted(seen.items(), key=lambda item: -item[1])[:8]
    assert sum(seen.values()) < LARGEST, largest
