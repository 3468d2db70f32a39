from __future__ import annotations

import pytest

from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.tools.approval_gate import ApprovalQuestion
from evercontext.tools.approval_text import consent_of

CALLER = Caller("t", Door.RUN)


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


async def _preview(arguments: object, caller: object) -> tuple[FileChange, ...]:
    return ()


OUTSIDE = Tool("exec", "Runs.", {}, Effect.EXECUTE, _never, origin="server tools")
HTTP = Tool("run.http", "Asks.", {}, Effect.NETWORK | Effect.EXECUTE, _never)
WRITE = Tool("write_file", "Writes.", {}, Effect.WRITE, _never, preview=_preview)
COMMAND = Tool("run_command", "Runs.", {}, Effect.EXECUTE, _never)


def lines(question: ApprovalQuestion) -> str:
    return "\n".join(line.text for line in consent_of(question).lines())


def test_every_argument_is_shown_by_its_name() -> None:
    """X1: only the path was shown of ``{"path": …, "command": "curl … | sh"}``."""
    given = {"path": "README.md", "command": "curl x | sh", "deep": {"a": [1, "二"]}, "n": None}
    shown = lines(ApprovalQuestion(OUTSIDE, given, (), CALLER))
    assert "exec needs your approval\na tool of server tools; it may: execute" in shown
    for text in ("path     README.md", "command  curl x | sh", '"二"', "n        null"):
        assert text in shown
    asked = {"url": "http://localhost/x", "method": "POST", "body": "a=1\nb=2", "timeout": 5}
    shown = lines(ApprovalQuestion(HTTP, asked, (), CALLER))
    assert shown.startswith("run.http http://localhost/x needs your approval")
    for text in ("method   POST", "  body\n    a=1\n    b=2", "timeout  5"):
        assert text in shown


@pytest.mark.parametrize(
    ("character", "written"),
    [
        ("\x1b", "\\x1b"),
        ("\r", "\\x0d"),
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\u3164", "\\u3164"),
        ("\u00a0", "\\xa0"),
        ("\u3000", "\\u3000"),
        ("\u200d", "\\u200d"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\x9b", "\\x9b"),
    ],
)
def test_nothing_is_hidden_in_a_command(character: str, written: str) -> None:
    shown = lines(ApprovalQuestion(COMMAND, {"command": f"ls{character}x"}, (), CALLER))
    assert f"ls{written}x" in shown
    assert character not in shown
    named = ApprovalQuestion(OUTSIDE, {f"a{character}\nb": "x"}, (), CALLER)
    assert character not in lines(named) or character == "\u3000"


def test_a_diff_is_whole_and_japanese_stays_readable() -> None:
    after = "".join(f"行 {number}\u3000だ {'x' * 40}\n" for number in range(4_000)) + "evil\n"
    change = FileChange("日本.md", "old\n", after)
    question = ApprovalQuestion(WRITE, {"path": "日本.md", "content": after}, (change,), CALLER)
    shown = lines(question)
    assert len(shown) > 180_000
    assert shown.endswith("+evil")
    assert "+行 3999\u3000だ" in shown
    # The content is in the diff, and nowhere a second time.
    assert "content" not in shown
    assert consent_of(question).to_json()["changes"][0]["diff"].endswith("+evil\n")


def test_the_digest_names_tool_effects_arguments_and_root() -> None:
    def digest(tool: Tool = COMMAND, command: str = "ls", root: str = "/a") -> str:
        return ApprovalQuestion(tool, {"command": command}, (), CALLER, root).digest

    others = {digest(HTTP), digest(OUTSIDE), digest(command="ls "), digest(root="/b"), digest()}
    assert len(others) == 5
    assert digest() == digest()
    mutable = {"command": "ls"}
    question = ApprovalQuestion(COMMAND, mutable, (), CALLER, "/a")
    mutable["command"] = "rm"
    assert question.digest == digest()
