"""Events in a few words: calls, results, changes, checks and endings, in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evercontext.cli.messages import language, translate, translate_composed
from evercontext.cli.terminal import clip, counted, labelled, listed, one_line, visible
from evercontext.domain.event import Diff, Final, RepairAttempt, Step, StepResult, Verification
from evercontext.domain.tool import CommandAccess
from evercontext.errors import ApprovalDenied, ModeRefused, PolicyError, by_code

MOST_OUTPUT_LINES = 8
_MODES = re.compile(r"\Aold mode 100(\d+)\nnew mode 100(\d+)\n")
_OPENED = (CommandAccess.NETWORK.value, CommandAccess.OUTSIDE.value)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def describe_call(step: Step) -> str:
    """A call in a few words: the tool, how it is made, and what it is about."""
    return f"{shown_tool(step.tool)}{manner(step)} {subject(step.arguments)}".rstrip()


def manner(step: Step) -> str:
    """Return what sets a call apart: before the change, in the background, with network."""
    parts = [translate("before the change")] if step.state == "before" else []
    if step.arguments.get("background") is True:
        parts.append(translate("in the background"))
    if step.access in _OPENED:
        parts.append(translate(CommandAccess(step.access).phrase))
    return f" ({', '.join(parts)})" if parts else ""


def shown_tool(name: str) -> str:
    """Return the one name that a tool is shown by, however a model spelt it."""
    if ":" in name:
        return one_line(name)
    return one_line(_CAMEL.sub("_", name.replace("__", ".")).lower())


def error_line(final: Final) -> tuple[str, str]:
    """Return why a task ended badly and its colour; what the user chose is no error."""
    text = final.error or ""
    if final.status in ("cancelled", "denied"):
        return translate_composed(one_line(text)), "yellow"
    return labelled("error", text), "red"


def subject(arguments: Mapping[str, Any]) -> str:
    """The argument that says most: the path, else the first short one."""
    return one_line(_telling(arguments)[:300])


def _telling(arguments: Mapping[str, Any]) -> str:
    for name in ("path", "directory", "command", "query", "url"):
        if isinstance(arguments.get(name), str | list | tuple):
            return _words(arguments[name])
    return next((_words(v) for v in arguments.values() if isinstance(v, str | int)), "")


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def verdict(result: StepResult) -> tuple[str, str]:
    """How a call ended, in one word and its colour."""
    if result.ok and result.exit_code is not None:
        word = translate("exit {code}", code=result.exit_code)
        return word, "yellow" if result.exit_code else "green"
    if result.ok and result.hits is not None:
        return counted(result.hits, "hit"), "green" if result.hits else "yellow"
    if result.ok:
        return translate("ok"), "green"
    kind = by_code(result.error or "")
    if issubclass(kind, PolicyError | ModeRefused):
        return translate("refused"), "red"
    return translate("denied" if issubclass(kind, ApprovalDenied) else "failed"), "yellow"


def denied(result: StepResult) -> bool:
    """True if a person said no: that is their choice, no failure."""
    return not result.ok and issubclass(by_code(result.error or ""), ApprovalDenied)


def output_lines(result: StepResult, columns: int) -> list[str]:
    """The end of what a command said, without the command itself; nothing for other tools."""
    if not result.ok or result.exit_code is None:
        return []
    # The ending is in the verdict, unless it says more than the exit code.
    known = f"[exit code {result.exit_code}]"
    lines = [line for line in visible(result.text.strip("\n")).split("\n") if line != known]
    lines = lines[1:] if lines[0].startswith("$ ") else lines
    hidden = len(lines) - MOST_OUTPUT_LINES
    before = ["… " + translate("{lines} before", lines=counted(hidden, "line"))]
    before = before if hidden > 0 else []
    return [*before, *(clip(line, columns) for line in lines[-MOST_OUTPUT_LINES:])]


def describe_diff(diff: Diff) -> str:
    """A change in a few words."""
    if not diff.diff and diff.kind == "changed":
        return f"{one_line(diff.path)} {translate('unchanged')}"
    kind = translate(diff.kind if diff.applied else f"would be {diff.kind}")
    modes = _MODES.match(diff.diff)
    mode = f", {translate('mode')} {modes[1]} → {modes[2]}" if modes else ""
    return f"{one_line(diff.path)} {kind} +{diff.added} -{diff.removed}{mode}"


def without_modes(diff: str) -> str:
    """A diff without the lines that name changed modes: they are said above it."""
    return _MODES.sub("", diff, count=1)


def plan_part(task: Mapping[str, Any]) -> str:
    """One task of a plan in a few words."""
    after = ", ".join(task.get("depends_on") or ())
    waits = f" ({translate('after {tasks}', tasks=after)})" if after else ""
    return f"{task.get('id')}: {task.get('title')}{waits}"


def describe_repair(attempt: RepairAttempt) -> str:
    """Describe one attempt to fix something in a few words."""
    before = counted(attempt.failures_before, "failure")
    ended = translate("green")
    if not attempt.green:
        ended = translate("{count} left", count=attempt.failures_after)
    same = "{ended}, taken back" if attempt.paths else "nothing changed"
    words = {
        "rejected": translate("rejected, restored"),
        "same": translate(same, ended=ended),
        "worse": translate("{ended}, worse, taken back", ended=ended),
    }
    what = f" {', '.join(attempt.paths[:5])}" if attempt.paths else ""
    result = listed([before, words.get(attempt.step, ended)])
    return one_line(f"{attempt.number}: {attempt.by}{what} → {result}")


def repair_style(attempt: RepairAttempt) -> tuple[str, ...]:
    """The colour of a try: green, or yellow where something is left."""
    return ("green",) if attempt.green else ("dim",) if attempt.kept else ("yellow",)


def describe_check(check: Verification) -> str:
    """A check of the harness in a few words."""
    ended = translate("not run")
    if check.exit_code is not None:
        ended = translate("exit {code}", code=check.exit_code)
    # The trace has the whole path of the program; here its name says enough.
    program, *rest = check.command or ("",)
    command = " ".join([program.rpartition("/")[2], *rest])
    summary = translate_composed(check.summary)
    stop = "。" if language() == "ja" else ". "
    return one_line(f"{translate(check.kind)}: {command} → {ended}{stop}{summary}")


def describe_final(final: Final, *, dry: bool = False) -> str:
    """The end of a task in a few words."""
    files = counted(len(final.changed), "file")
    changed = translate("{files} would change" if dry else "{files} changed", files=files)
    parts = [changed, *([translate(final.verified)] if final.verified and not dry else [])]
    if final.rolled_back:
        parts.append(translate("{count} rolled back", count=len(final.rolled_back)))
    if final.tasks > 1:
        done, of = final.tasks_done, final.tasks
        parts.insert(0, translate("{done} of {of} tasks done", done=done, of=of))
    parts += [counted(final.turns, "turn")]
    tokens = final.input_tokens + final.output_tokens
    parts += [counted(tokens, "token")] if tokens else []
    parts += [f"${final.cost_usd:.4f}"] if final.cost_usd is not None else []
    return listed([*parts, seconds(final.duration_ms)])


def seconds(milliseconds: int) -> str:
    """A duration as people say it."""
    if milliseconds < 1000:
        return translate("{count} ms", count=milliseconds)
    if milliseconds < 60_000:
        return translate("{count} s", count=f"{milliseconds / 1000:.1f}")
    minutes, rest = milliseconds // 60_000, milliseconds // 1000 % 60
    return translate("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
