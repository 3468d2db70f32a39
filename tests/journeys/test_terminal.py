"""A person at a real terminal: live text, questions, Ctrl-C."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pexpect
import pytest

from tests.cli.command import EVERCONTEXT
from tests.journeys.story import digest, script, write

HELLO = 'print("こんにちは")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


def at_terminal(project: Path, *arguments: str, **environment: str) -> pexpect.spawn[str]:
    return pexpect.spawn(
        EVERCONTEXT,
        list(arguments),
        cwd=str(project),
        env={**os.environ, "TERM": "xterm-256color", **environment},
        encoding="utf-8",
        timeout=60,
        dimensions=(40, 80),
    )


def ended(child: pexpect.spawn[str]) -> tuple[int, str]:
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None
    return child.exitstatus, child.before or ""


@pytest.mark.contract("E34")
def test_yes_once_and_for_the_rest_of_the_run(project: Path, tmp_path: Path) -> None:
    turns = [write("a.py", HELLO), write("b.py", HELLO), write("c.py", HELLO), {"text": "Made."}]
    model = script(tmp_path / "s.jsonl", *turns)
    child = at_terminal(project, "run", "--ask", "-t", "x", "-m", model)
    child.expect("a.py would be created")
    child.expect("こんにちは")
    child.expect("4 no > ")
    assert digest(project) == {}
    child.sendline("1")
    child.expect("b.py would be created")
    child.expect("4 no > ")
    assert list(digest(project)) == ["a.py"]
    child.sendline("2")
    code, _ = ended(child)
    assert code == 0
    assert list(digest(project)) == ["a.py", "b.py", "c.py"]


@pytest.mark.contract("E35")
def test_no_with_feedback_reaches_the_model(project: Path, tmp_path: Path) -> None:
    model = script(
        tmp_path / "s.jsonl",
        write("a.py", HELLO),
        {"when": "短く書いて", "text": "Then I leave it."},
        {"text": "never said"},
    )
    child = at_terminal(project, "run", "--ask", "-t", "x", "-m", model)
    child.expect("4 no > ")
    child.sendline("4")
    child.expect("instead")
    child.sendline("短く書いて")
    code, rest = ended(child)
    assert code == 5
    assert "Then I leave it." in rest
    assert digest(project) == {}


@pytest.mark.contract("E34")
def test_what_was_typed_before_a_question_does_not_answer_it(project: Path, tmp_path: Path) -> None:
    """Lines that wait in the terminal when the question comes."""
    model = script(tmp_path / "s.jsonl", write("a.py", HELLO), {"text": "Made."})
    command = shlex.join([EVERCONTEXT, "run", "--ask", "-t", "x", "-m", model])
    # The shell takes the first line alone, so the others are there before our program starts.
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", f"read go; exec {command}"],
        cwd=str(project),
        encoding="utf-8",
        timeout=60,
    )
    child.send("go\ny\ny\n")
    child.expect("4 no > ")
    child.sendline("4")
    child.expect("instead")
    child.sendline("")
    code, _ = ended(child)
    assert code == 5
    assert digest(project) == {}


@pytest.mark.case(136)
@pytest.mark.contract("E35")
def test_ctrl_c_at_a_question_leaves_a_clean_state(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write("a.py", HELLO), {"text": "Made."})
    child = at_terminal(project, "run", "--ask", "-t", "x", "-m", model)
    child.expect("4 no > ")
    child.sendintr()
    code, rest = ended(child)
    assert code == 130
    assert "Traceback" not in rest
    assert "cancelled" in rest
    assert digest(project) == {}


@pytest.mark.slow
def test_colours_and_their_absence(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write("a.py", HELLO), {"text": "Made."})
    plain: list[str] = []
    for environment in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        child = at_terminal(project, "run", "-t", "x", "-m", model, **environment)
        code, shown = ended(child)
        assert code == 0
        assert "Made." in shown
        plain.append(shown)
    assert "\x1b[32m" in plain[0]
    assert "\x1b" not in plain[1] + plain[2]


@pytest.mark.case(66)
def test_trust_is_asked_for_with_the_content_shown(project: Path) -> None:
    (project / "evercontext.toml").write_text(
        'test_cmd = "echo \x1b[2J"\n'.replace("\x1b", "\\u001b")
    )
    child = at_terminal(project, "config", "trust")
    child.expect("test_cmd")
    child.expect(r"\[y/N\] ")
    child.sendline("n")
    assert ended(child)[0] == 5
    child = at_terminal(project, "config", "trust")
    child.expect(r"\[y/N\] ")
    child.sendline("y")
    code, rest = ended(child)
    assert code == 0
    assert "trusted" in rest
