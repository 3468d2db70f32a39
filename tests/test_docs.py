"""The documentation says what is true: links lead somewhere, commands exist, examples run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evercontext.cli.main import COMMANDS, command

HERE = Path(__file__).resolve().parent.parent
PAGES = sorted([*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md")])
READMES = (HERE / "README.md", HERE / "README.ja.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(HERE).as_posix()


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield body


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_every_page_of_the_documentation_is_linked() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in LINK.findall(prose(page))
    }
    assert [name_of(page) for page in PAGES if page not in linked and page not in READMES] == []


def shell_commands() -> Iterator[tuple[str, str]]:
    """Every line of a shell block that calls us, joined with its continuation lines."""
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"\s[|]\s|\s&&\s", line):
                    if part.strip().startswith("evercontext "):
                        yield name_of(page), part.strip()


@pytest.mark.parametrize(("page", "line"), sorted(set(shell_commands())))
def test_commands_in_the_documentation_exist(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(command)
    found: click.Command = command
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        inner = found.get_command(context, words.pop(0))
        assert inner is not None, f"{page}: {line}"
        found = inner
    known = {option for parameter in found.params for option in parameter.opts} | {"--help"}
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert options <= known, f"{page}: {line}"


def test_every_command_is_in_the_reference() -> None:
    text = (HERE / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`evercontext {name}`" not in text] == []


def test_both_readmes_are_in_step() -> None:
    english, japanese = (page.read_text(encoding="utf-8") for page in READMES)
    assert headings(english) == headings(japanese)
    assert code(READMES[0]) == code(READMES[1])
    local = [
        sorted({t for t in LINK.findall(text) if ":" not in t}) for text in (english, japanese)
    ]
    assert set(local[0]) - {"README.ja.md"} == set(local[1]) - {"README.md"}


def headings(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", FENCE.sub("", text), re.MULTILINE)]


def code(page: Path) -> list[str]:
    return list(blocks(page, "sh", "console", "text", "json", "toml"))


@pytest.mark.contract("E34")
def test_the_scripted_example_runs(tmp_path: Path) -> None:
    (script,) = blocks(HERE / "docs" / "how-to" / "run-in-a-script.md", "json")
    for line in script.splitlines():
        json.loads(line)
    (tmp_path / "turns.jsonl").write_text(script, encoding="utf-8")
    (tmp_path / "project").mkdir()
    arguments = ["--model", f"scripted:{tmp_path / 'turns.jsonl'}", "--task", "say hi"]
    done = subprocess.run(
        [Path(sys.executable).with_name("evercontext"), "run", *arguments],
        cwd=tmp_path / "project",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "project" / "app" / "main.py").read_text() == "print('hi')\n"


def test_what_is_compared_with_other_agents_is_proved() -> None:
    """A row of the comparison names a test that exists, or a picture that does."""
    page = HERE / "docs" / "explanation" / "other-agents.md"
    source = "\n".join(path.read_text("utf-8") for path in (HERE / "tests").rglob("test_*.py"))
    rows = [row.split("|") for row in page.read_text("utf-8").splitlines() if row.startswith("| ")]
    rows = [row for row in rows if row[1].strip() != "Feature"]
    assert len(rows) > 25
    for row in rows:
        assert len(row) == 9, row
        proofs = re.findall(r"`(test_\w+)`", row[3])
        assert proofs or "picture" in row[3], row
        assert [name for name in proofs if f"def {name}(" not in source] == []
