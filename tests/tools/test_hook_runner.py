from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.event import Event, HookRan
from evercontext.domain.tool import Caller, Door, Effect, Mode, Tool, ToolResult
from evercontext.events.log import EventLog
from evercontext.process.run import Completed
from evercontext.settings.hook_config import Hook
from evercontext.tools.hook_runner import Hooks, Ran, Verdict, judge
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox


def ended(code: int = 0, out: str = "", err: str = "", *, timed_out: bool = False) -> Completed:
    return Completed(
        ("x",), code, out.encode(), err.encode(), truncated=False, timed_out=timed_out, duration=1.0
    )


def said(**inner: Any) -> Completed:
    return ended(out=json.dumps({"hookSpecificOutput": inner}))


@pytest.mark.parametrize(
    ("event", "how", "verdict", "word"),
    [
        ("PreToolUse", ended(), Verdict(), "none"),
        ("PreToolUse", ended(out="words"), Verdict(), "none"),
        ("UserPromptSubmit", ended(out="words"), Verdict(context="words"), "none"),
        ("PreToolUse", ended(2, err="no\n"), Verdict(blocked="no"), "block"),
        ("PreToolUse", ended(2), Verdict(blocked="no reason given"), "block"),
        ("PreToolUse", ended(1, err="oops"), Verdict(), "error"),
        ("PreToolUse", ended(-9, timed_out=True), Verdict(), "error"),
        ("PreToolUse", ended(out="{"), Verdict(), "error"),
        ("PreToolUse", ended(out="{" * 100_000), Verdict(), "error"),
        ("PreToolUse", said(permissionDecision="allow"), Verdict(), "none"),
        ("PreToolUse", said(permissionDecision="ask"), Verdict(ask=True), "ask"),
        (
            "PreToolUse",
            said(permissionDecision="deny", permissionDecisionReason="n"),
            Verdict(blocked="n"),
            "block",
        ),
        ("PreToolUse", said(updatedInput={"a": 1}), Verdict(arguments={"a": 1}), "changed"),
        ("PreToolUse", said(updatedInput="no map"), Verdict(), "none"),
        ("PostToolUse", said(additionalContext="mind"), Verdict(context="mind"), "none"),
        ("Stop", ended(out='{"decision": "block", "reason": "r"}'), Verdict(blocked="r"), "block"),
        ("Stop", ended(out='{"continue": false, "stopReason":"s"}'), Verdict(blocked="s"), "block"),
        ("Stop", ended(out='{"hookSpecificOutput": [1]}'), Verdict(), "none"),
    ],
)
def test_what_a_hook_says(event: str, how: Completed, verdict: Verdict, word: str) -> None:
    assert judge(event, how) == (verdict, word)


def a_tool(calls: list[str]) -> Tool:
    @tool(Effect.WRITE, name="write_file")
    async def write_file(path: str) -> ToolResult:
        """Write."""
        calls.append(path)
        return ToolResult(f"wrote {path}")

    return write_file


async def test_hooks_run_in_order_each_with_what_the_one_before_made_of_it(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    heard: list[Event] = []
    log = EventLog(tmp_path)
    log.subscribe(heard.append)

    async def run(hook: Hook, stdin: bytes, caller: Caller) -> Ran:
        given = json.loads(stdin)
        seen.append(given)
        if hook.command == "rename":
            return Ran(said(updatedInput={"path": given["tool_input"]["path"] + "+"}))
        return Ran(ended(2, err="full") if len(given["tool_input"]["path"]) > 3 else ended())

    hooks = [Hook("PreToolUse", "rename"), Hook("PreToolUse", "check"), Hook("Stop", "never")]
    calls: list[str] = []
    box = Toolbox([a_tool(calls)], log, hooks=Hooks(hooks, run, log, "/p"))
    caller = Caller("t", Door.RUN)
    assert (await box.call("write_file", {"path": "a"}, caller)).ok
    assert calls == ["a+"]
    assert [given["tool_input"]["path"] for given in seen] == ["a", "a+"]
    refused = await box.call("write_file", {"path": "abc"}, caller)
    assert refused.error is not None
    assert refused.error.code == "hook_blocked"
    assert calls == ["a+"]
    told = [event.body.decision for event in heard if isinstance(event.body, HookRan)]
    assert told == ["changed", "none", "changed", "block"]
    log.close()


async def test_arguments_of_a_hook_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def run(hook: Hook, stdin: bytes, caller: Caller) -> Ran:
        return Ran(said(updatedInput={"nonsense": 1}))

    calls: list[str] = []
    log = EventLog(tmp_path)
    box = Toolbox([a_tool(calls)], log, hooks=Hooks([Hook("PreToolUse", "x")], run, log, "/p"))
    result = await box.call("write_file", {"path": "a"}, Caller("t", Door.RUN))
    assert (result.ok, calls) == (False, [])
    log.close()


async def test_what_is_said_afterwards_is_added_but_not_in_a_dry_run(tmp_path: Path) -> None:
    async def run(hook: Hook, stdin: bytes, caller: Caller) -> Ran:
        return Ran(ended(2, err="line 3 is too long"))

    log = EventLog(tmp_path)
    calls: list[str] = []
    whole = Toolbox([a_tool(calls)], log, hooks=Hooks([Hook("PostToolUse", "x")], run, log, "/p"))
    for box in (whole, whole.only(["write_file"]), whole.along_with([])):
        result = await box.call("write_file", {"path": "a"}, Caller("t", Door.RUN))
        assert result.ok
        assert result.text.endswith("[said by a hook after this call]\nline 3 is too long")
    dry = await whole.call("write_file", {"path": "a"}, Caller("t", Door.RUN, Mode.DRY_RUN))
    assert "too long" not in dry.text
    log.close()
