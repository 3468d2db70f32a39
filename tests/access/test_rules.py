from __future__ import annotations

import pytest

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.access.rules import Rule, judge, parse, rules_for
from evercontext.domain.tool import Arguments, Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.errors import UsageError
from evercontext.testing import memory_store

CALLER = Caller("t", Door.CHAT)


async def _run(arguments: Arguments, caller: Caller) -> ToolResult:
    return ToolResult("")


async def _preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
    return ()


def tool(name: str, effects: Effect = Effect.WRITE, *, path: bool = True) -> Tool:
    properties = {"path": {"type": "string"}} if path else {"command": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    return Tool(name, "", schema, effects, _run, preview=_preview if path else None)


WRITE, NATIVE = tool("write_file"), tool("writeFile")
READ = tool("read_file", Effect.READ)
COMMAND = tool("run_command", Effect.EXECUTE | Effect.WRITE, path=False)


def verdict(rules: list[str], called: Tool, **arguments: str) -> str | None:
    known = [parse(*rule.split(" ", 1)) for rule in rules]
    found = judge(known, called, arguments)
    return found.verdict if found else None


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (["allow write_file(src/**)"], "src/a/b.py", "allow"),
        (["allow write_file(src/**)"], "./src/b.py", "allow"),
        (["allow write_file(src/**)"], "other/b.py", None),
        (["allow write_file(src/**)"], "src2/b.py", None),
        (["allow write_file(*.py)"], "a.py", "allow"),
        (["allow write_file(*.py)"], "deep/a.py", None),
        (["allow write_file(**/*.py)"], "a.py", "allow"),
        (["allow edit(docs/**)"], "docs/日本語.md", "allow"),
        (["allow *"], "x", "allow"),
        (["allow edit", "deny write_file(secrets/**)"], "secrets/a", "deny"),
        (["allow edit", "ask write_file(db/**)"], "db/a.sql", "ask"),
        (["ask *", "deny *"], "x", "deny"),
        (["allow read_file"], "x", None),
    ],
)
def test_paths(rules: list[str], path: str, expected: str | None) -> None:
    assert verdict(rules, WRITE, path=path) == expected
    # A rule holds for both names of one tool.
    assert verdict(rules, NATIVE, path=path) == expected


def test_a_move_is_allowed_only_where_both_ends_are() -> None:
    move = tool("move_file")
    assert verdict(["allow edit(src/**)"], move, path="src/a", to="src/b") == "allow"
    assert verdict(["allow edit(src/**)"], move, path="src/a", to="etc/b") is None
    assert verdict(["deny edit(etc/**)", "allow edit"], move, path="a", to="etc/b") == "deny"


@pytest.mark.parametrize(
    ("rules", "command", "expected"),
    [
        (["allow run_command(git status*)"], "git status --short", "allow"),
        (["allow run_command(git status*)"], "git status && rm -r src", None),
        (["allow run_command(git status*)"], "git status > out", None),
        (["allow run_command(git status*)"], "git status $(touch x)", None),
        (["allow run_command(git status*)"], "git status `touch x`", None),
        (["allow run_command(git status*)"], "git status\nrm x", None),
        (["allow run_command(ls *)", "allow run_command(wc *)"], "ls | wc -l", "allow"),
        (["allow run_command(pytest *)"], "pytest", "allow"),
        (["allow run_command(pytest *)"], "pytest-evil", None),
        (["allow shell"], "anything; at all", "allow"),
        (["allow run_command", "deny run_command(curl *)"], "ls; curl x", "deny"),
        (["allow run_command", "deny run_command(curl *)"], "echo $(curl x)", "deny"),
    ],
)
def test_commands(rules: list[str], command: str, expected: str | None) -> None:
    shell = Tool("run_command", "", COMMAND.arguments, COMMAND.effects, _run, aliases=("shell",))
    assert verdict(rules, shell, command=command) == expected


@pytest.mark.parametrize("text", ["", "write file", "x(", "(a)", "write_file)"])
def test_what_is_no_rule_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        parse("allow", text)
    with pytest.raises(UsageError):
        parse("maybe", "edit")


@pytest.mark.parametrize(
    ("called", "arguments", "expected"),
    [
        (WRITE, {"path": "src/app/a.py"}, ["edit(src/app/**)"]),
        (WRITE, {"path": "a.py"}, ["edit(*)"]),
        (COMMAND, {"command": "git log --oneline | head"},
         ["run_command(git log *)", "run_command(head *)"]),
        (COMMAND, {"command": "python -c 'x'"}, ["run_command(python -c x)"]),
        (READ, {"path": "x"}, ["read_file"]),
    ],
)  # fmt: skip
def test_always_stores_a_rule_that_covers_the_call(
    called: Tool, arguments: dict[str, str], expected: list[str]
) -> None:
    made = rules_for(called, arguments)
    assert [rule.text for rule in made] == expected
    ruling = judge(made, called, arguments)
    assert ruling is not None
    assert ruling.verdict == "allow"


def test_the_order_of_powers() -> None:
    asks = Permissions(root="/p")
    assert asks(READ, {"path": "x"}, CALLER) == "allow"
    assert asks(WRITE, {"path": "x"}, CALLER) == "ask"
    yes = Permissions(root="/p", yes=True, stored=[parse("deny", "edit(keys/**)")])
    assert yes(WRITE, {"path": "x"}, CALLER) == "allow"
    assert yes(WRITE, {"path": "keys/x"}, CALLER) == "deny"
    assert yes(COMMAND, {"command": "make"}, CALLER) == "allow"
    assert yes(COMMAND, {"command": "git push"}, CALLER) == "ask"
    yes.session.append(Rule("allow", "run_command"))
    assert yes(COMMAND, {"command": "git push"}, CALLER) == "ask"
    check = tool("run.test", Effect.EXECUTE, path=False)
    assert yes(check, {"command": "git push"}, CALLER) == "ask"


async def test_stored_rules_belong_to_one_project() -> None:
    async with memory_store() as store:
        here, there = StoredRules(store, "/here"), StoredRules(store, "/there")
        await here.add(parse("allow", "edit(src/**)"))
        await here.add(parse("deny", "edit(src/**)"))
        assert await here.all() == [Rule("deny", "edit", "src/**")]
        assert await there.all() == []
        assert not await there.remove("edit(src/**)")
        assert await here.remove("edit(src/**)")
        assert await here.all() == []
