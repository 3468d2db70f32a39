from __future__ import annotations

import pytest

from evercontext.access.approval_rules import (
    AccessRule,
    judge,
    parse,
    reason_for_no_rules,
    rules_for,
)
from evercontext.access.permissions import Permissions, StoredRules
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
        (
            COMMAND,
            {"command": "git log --oneline | head"},
            ["run_command(git log *)", "run_command(head *)"],
        ),
        (COMMAND, {"command": "echo hi > f"}, ["run_command(echo hi > f)"]),
        (COMMAND, {"command": "echo 2>err hi >>'a b'"}, ["run_command(echo hi 2> err >> 'a b')"]),
        (COMMAND, {"command": "ls x 2>/dev/null >&2"}, ["run_command(ls *)"]),
        (COMMAND, {"command": "git log; > f"}, ["run_command(git log *)", "run_command(> f)"]),
        (READ, {"path": "x"}, ["read_file"]),
    ],
)
def test_always_stores_a_rule_that_covers_the_call(
    called: Tool, arguments: dict[str, str], expected: list[str]
) -> None:
    made = rules_for(called, arguments)
    assert [rule.text for rule in made] == expected
    ruling = judge(made, called, arguments)
    assert ruling is not None
    assert ruling.verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "env FOO=1 ls",
        "timeout 5 ls",
        "sed -n 1p f",
        "xargs rm",
        "find . -exec ls {} +",
        "sh x.sh",
        "/bin/bash -c ls",
        "python3.11 x.py",
        "python -c 'x'",
        "node x.js",
        "npx jest",
        "sudo ls",
        "ssh host ls",
        "git -c core.pager=x log",
        "git grep -Ovi x",
        "awk 1 f",
        "make test",
        "npm run build",
        "uv run x",
        "nice ls",
        "X=1 ls",
        "l? x",
        "ls $X",
        "ls `x`",
        "ls $(x)",
        "tar -xf a --to-command=sh",
        "tar xf a --to-com=sh",
        "rsync -e sh a b",
        "tar xIf sh a",
        "curl -sO x",
        "ls && env x",
        "ls\npython x",
        "pytest -p evil",
        "nohup ls",
        "docker run x",
        "time ls",
    ],
)
def test_no_rule_is_stored_for_programs_that_run_others(command: str) -> None:
    """X21: one consent would be a consent to everything."""
    assert rules_for(COMMAND, {"command": command}) == ()
    assert reason_for_no_rules(COMMAND, {"command": command})


@pytest.mark.parametrize(
    ("rule", "command", "covered"),
    [
        # V16: what was consented to is that redirection and no other.
        ("echo hi > f", "echo hi > f", True),
        ("echo hi > f", 'echo "hi">f', True),
        ("echo hi > f", "echo hi f", False),
        ("echo hi > f", "echo hi > g", False),
        ("echo hi > f", "echo hi >> f", False),
        ("echo hi > f", "echo 'hi > f'", False),
        ("echo hi f", "echo hi > f", False),
        ("echo *", "echo hi > f", False),
        ("echo *", "echo hi &> f", False),
        ("echo *", "echo hi >& f", False),
        ("echo *", "echo hi >| f", False),
        ("echo *", "echo hi 2>&1", True),
        ("echo *", "echo hi 2>/dev/null", True),
        ("echo *", 'echo "a\\"; evil"', True),
        # X21: words as the shell reads them.
        ("ls *", "ls\u3000x/../evil.sh", False),
        ("ls *", "ls\u00a0x/../evil.sh", False),
        ("ls *", "ls\x0cx", False),
        ("ls *", "ls\tx", True),
        ("ls *", "'ls x'", False),
        ("ls *", "ls 'x; y'", True),
        ("ls *", "ls x; y", False),
        ("ls *", "ls x&&y", False),
        ("ls *", "ls x\ny", False),
        ("ls *", 'ls "$(y)"', False),
        ("ls *", "ls $'\\'' ; y #'", False),
        ("find *", "find . -name x", True),
        ("find *", "find . -exec y ;", False),
        ("find * -exec grep *", "find . -exec grep x {} +", True),
        ("git log *", "git log -c x", False),
        ("git log *", "git log --output=.envrc", False),
    ],
)
def test_a_rule_covers_what_the_shell_would_run(rule: str, command: str, covered: bool) -> None:
    ruled = verdict([f"allow run_command({rule})"], COMMAND, command=command)
    assert (ruled == "allow") is covered


def test_a_rule_for_the_projects_tests_is_none_for_another_command() -> None:
    check = tool("run.test", Effect.EXECUTE, path=False)
    assert verdict(["allow run.test"], check) == "allow"
    assert verdict(["allow run.test"], check, command="evil") is None
    assert verdict(["allow run.test(pytest *)"], check, command="pytest -q") == "allow"
    assert verdict(["allow *"], check, command="evil") == "allow"


def test_the_order_of_powers() -> None:
    asks = Permissions(root="/p")
    assert asks(READ, {"path": "x"}, CALLER) == "allow"
    assert asks(WRITE, {"path": "x"}, CALLER) == "ask"
    yes = Permissions(root="/p", yes=True, stored=[parse("deny", "edit(keys/**)")])
    assert yes(WRITE, {"path": "x"}, CALLER) == "allow"
    assert yes(WRITE, {"path": "keys/x"}, CALLER) == "deny"
    assert yes(COMMAND, {"command": "make"}, CALLER) == "allow"
    assert yes(COMMAND, {"command": "git push"}, CALLER) == "ask"
    yes.session.append(AccessRule("allow", "run_command"))
    assert yes(COMMAND, {"command": "git push"}, CALLER) == "ask"
    check = tool("run.test", Effect.EXECUTE, path=False)
    assert yes(check, {"command": "git push"}, CALLER) == "ask"


async def test_stored_rules_belong_to_one_project() -> None:
    async with memory_store() as store:
        here, there = StoredRules(store, "/here"), StoredRules(store, "/there")
        await here.add(parse("allow", "edit(src/**)"))
        await here.add(parse("deny", "edit(src/**)"))
        assert await here.all() == [AccessRule("deny", "edit", "src/**")]
        assert await there.all() == []
        assert not await there.remove("edit(src/**)")
        assert await here.remove("edit(src/**)")
        assert await here.all() == []
