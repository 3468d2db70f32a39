"""``evercontext fix``: run the checks and fix what needs no model; everything can be undone."""

from __future__ import annotations

import difflib
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of, warn
from evercontext.cli.terminal import Screen, counted, labelled, one_line
from evercontext.domain.event import Event, Notice, RepairAttempt, Verification
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.agent.project_repair import RepairReport
    from evercontext.agent.verification import Findings
    from evercontext.app import EverContext
    from evercontext.workspace.failures.failure import Failure

MOST_SHOWN = 20


@click.command("fix")
@click.option("--lint-cmd", metavar="COMMAND", help="Lint with this. Default: what is found.")
@click.option("--test-cmd", metavar="COMMAND", help="Test with this. Default: what is found.")
@click.option("--no-test", is_flag=True, help="Lint only.")
@click.option("--dry-run", is_flag=True, help="Show what would be tried first; change nothing.")
@json_option
@root_option
def command(**options: Any) -> int:
    """Run the checks and fix what needs no model.

    Missing and unused imports, misspelt names, wrong import paths, small slips of syntax,
    formatting. A change stays only if the checks are better with it; tests and the settings of
    checks are never changed. `evercontext undo` takes everything back.

    \b
    Exit codes
      0 green      1 nothing to check      4 something is still red

    \b
    Examples
      evercontext fix
      evercontext fix --dry-run
      evercontext fix --no-test --lint-cmd "ruff format --check ."
    """
    settings = settings_of(
        options["root"],
        allow_wide_root=options["allow_wide_root"],
        lint_cmd=options["lint_cmd"],
        test_cmd=options["test_cmd"],
        auto_test=False if options["no_test"] else None,
    )
    return int(run_until_stopped(_fix(settings, options["dry_run"], options["as_json"])))


async def _fix(settings: Settings, dry: bool, as_json: bool) -> Outcome:
    from evercontext.agent.project_repair import repair_project
    from evercontext.agent.task import new_trace_id
    from evercontext.app import EverContext

    err = Screen(sys.stderr, no_color=settings.no_color)
    moves: list[RepairAttempt] = []
    async with EverContext.open(settings) as app:
        warn(app, err)
        stop = app.events.subscribe(lambda event: _show(event, moves, err))
        try:
            done = await repair_project(app, trace_id=new_trace_id(), dry=dry)
        finally:
            stop()
        if as_json:
            print(json.dumps(_object(done, moves, dry), ensure_ascii=False))
        else:
            await _tell(done, app, dry, settings)
    return _outcome(done)


def _outcome(done: RepairReport) -> Outcome:
    verdicts = {"red": Outcome.RED, "not verified": Outcome.FAILED}
    return verdicts.get(done.after.verdict, Outcome.DONE)


def _show(event: Event, moves: list[RepairAttempt], err: Screen) -> None:
    from evercontext.cli.event_text import describe_check, describe_repair, repair_style

    match event.body:
        case Verification() as check:
            err.line(translate("check {what}", what=describe_check(check)), "dim")
        case RepairAttempt() as move:
            moves.append(move)
            text = translate("repair {what}", what=describe_repair(move))
            err.line(text, *repair_style(move))
        case Notice(level=level, text=text) if level != "info":
            err.line(err.wrapped(labelled(level, text)), "yellow")


async def _tell(done: RepairReport, app: EverContext, dry: bool, settings: Settings) -> None:
    out = Screen(sys.stdout, no_color=settings.no_color)
    if dry:
        await _propose(done, app, out)
    for path in done.changed:
        out.line(translate("fixed  {path}", path=one_line(path)), "green")
    left = done.after.failures
    for failure in left[:MOST_SHOWN]:
        out.line(translate("left  {what}", what=describe_failure(failure)), "yellow")
    if len(left) > MOST_SHOWN:
        more = translate("… and {count} more", count=len(left) - MOST_SHOWN)
        out.line(translate("left  {what}", what=more), "yellow")
    out.line(_summary(done))
    if done.changed:
        hint = f"evercontext undo {done.trace_id[:8]}"
        print(translate("take it back: {command}", command=hint), file=sys.stderr)


def describe_failure(failure: Failure) -> str:
    """One failure in one line."""
    where = failure.where or failure.test or failure.tool
    return one_line(f"{where}: {failure.message.splitlines()[0][:200]}")


def _summary(done: RepairReport) -> str:
    from evercontext.domain.check_verdicts import FEWER

    if not done.before.required:
        return translate(
            "nothing was checked: no lint or test command was found, see --lint-cmd, --test-cmd"
        )
    if done.before.verdict == "verified":
        return translate("green, nothing to fix")
    if done.before.verdict == FEWER:
        return translate("green, nothing to fix, but {fewer} than before", fewer=translate(FEWER))
    before, left = len(done.before.failures), len(done.after.failures)
    text = translate(
        "{failures}, {fixed} fixed, {left} left",
        failures=counted(before, "failure"),
        fixed=before - left,
        left=left,
    )
    if done.after.verdict == "not verified":
        reason = translate_composed(done.after.reason)
        why = translate("not green, because not verified: {reason}", reason=reason)
        return f"{text}, {why}" if before else why
    if done.after.verdict == FEWER:
        return translate("{text}, {fewer} than before", text=text, fewer=translate(FEWER))
    return text


async def _propose(done: RepairReport, app: EverContext, out: Screen) -> None:
    from evercontext.cli.render import painted_diff
    from evercontext.domain.tool import Caller, Door
    from evercontext.errors import EverContextError

    for proposal in done.proposed:
        what = f"{proposal.by}: {one_line(proposal.reason)}"
        out.line(translate("would try  {what}", what=what), "bold")
        for path, new in proposal.files.items():
            try:
                old = (await app.workspace.read(path, Caller(done.trace_id, Door.RUN))).content
            except EverContextError:
                old = ""
            names = f"a/{path}", f"b/{path}"
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
            for line in painted_diff(out, "\n".join(lines)):
                out.line(line)


def _object(done: RepairReport, moves: list[RepairAttempt], dry: bool) -> dict[str, Any]:
    import dataclasses

    return {
        "trace_id": done.trace_id,
        "verdict": done.after.verdict,
        "reason": done.after.reason or None,
        "before": _findings_object(done.before),
        "after": _findings_object(done.after),
        "changed": list(done.changed),
        "repairs": [dataclasses.asdict(move) for move in moves],
        **(
            {"dry_run": True, "proposed": [_proposed(proposal) for proposal in done.proposed]}
            if dry
            else {}
        ),
    }


def _findings_object(findings: Findings) -> dict[str, Any]:
    failures = [failure.to_json() for failure in findings.failures]
    return {"verdict": findings.verdict, "passed": findings.passed, "failures": failures}


def _proposed(proposal: Any) -> dict[str, Any]:
    what = {"by": proposal.by, "reason": proposal.reason, "files": dict(proposal.files)}
    return {**what, "tool": proposal.tool or None, "arguments": dict(proposal.arguments)}
