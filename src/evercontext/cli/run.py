"""``evercontext run``: one task, unattended, with an exit code that tells the truth."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import checks_options, gateway_of, root_option, settings_of, warn
from evercontext.cli.plan_file import editing, read_plan
from evercontext.cli.task_text import whole_task
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.event import Event, Final
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.errors import Cancelled, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.access.permissions import Permissions
    from evercontext.agent.plan import TaskPlan
    from evercontext.agent.resumption import Interrupted
    from evercontext.app import EverContext
    from evercontext.tools.approval_gate import Ask


class View(Protocol):
    """Something that shows a task."""

    def __call__(self, event: Event) -> None:
        """Take one event."""

    def pause(self) -> None:
        """End an unfinished line."""


@click.command("run")
@click.option("-t", "--task", "-p", "--prompt", "task", metavar="TEXT", help="What to do.")
@root_option
@click.option("--dry-run", is_flag=True, help="Show calls and diffs; write nothing.")
@click.option("--ask", is_flag=True, help="Ask before every change, with its diff.")
@click.option("-y", "--yes", is_flag=True, help="Never ask (the default here).")
@click.option("-m", "--model", metavar="NAME", help="provider:model, see `model list`.")
@click.option(
    "--fallback-model",
    metavar="NAME",
    multiple=True,
    help="Used if the model is unreachable; may be repeated.",
)
@click.option("--planner", metavar="NAME", help="Model that plans the task first.")
@click.option("--plan", metavar="FILE", help="Carry out this plan; - reads it from stdin.")
@click.option("--plan-only", is_flag=True, help="Show the plan, do nothing; see `plan`.")
@click.option("--edit-plan", is_flag=True, help="Change the plan in your editor first.")
@click.option("--resume", metavar="TRACE", help="Finish a task that was cut off; `last` works.")
@click.option(
    "--rollback-on-failure", is_flag=True, help="Take the changes back unless it ends done."
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    help="What stdout carries. Default: text.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --output-format json.")
@checks_options
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Model calls at most.")
@click.option("--timeout", type=click.FloatRange(0.001), metavar="SECONDS", help="Time at most.")
@click.option("--max-budget-usd", type=click.FloatRange(0), metavar="USD", help="Money at most.")
def command(task: str | None, **given: Any) -> int:
    """Do one task in a project, unattended.

    The task comes from --task, from stdin, or from both together. Writes stay inside the root
    and inside policy; every change is shown and can be undone.

    \b
    Exit codes
      0 done                      5 approval needed or denied
      1 failed                    6 a limit was hit
      2 refused by policy        64 wrong usage
      3 model JSON invalid       75 provider or database unreachable
      4 done, but checks red    130 cancelled, 143 terminated

    \b
    Examples
      evercontext run --task "Add a --version flag to app/main.py"
      git diff | evercontext run --task "Write tests for this change"
      evercontext run --dry-run --task "..." > change.patch
      evercontext run --plan plan.json --rollback-on-failure
    """
    _check(task, given)
    settings = _settings(given)
    plan = read_plan(given["plan"]) if given["plan"] else None
    text = (plan.task if plan and not task else "") or ("" if given["resume"] else whole_task(task))
    if given["plan_only"]:
        from evercontext.cli.plan import Showing, show_plan

        how = Showing(
            given["as_json"] or given["output_format"] in ("json", "stream-json"),
            None,
            given["edit_plan"],
        )
        return int(run_until_stopped(show_plan(text, settings, how)))
    style = "json" if given["as_json"] else given["output_format"] or "text"
    order = _Order(
        text, style, given["dry_run"], given["ask"], plan, given["edit_plan"], given["resume"]
    )
    try:
        return int(run_until_stopped(_run(order, lambda: _settings(given))))
    except Cancelled as stopped:
        if not order.told:
            raise
        return int(outcome_of(stopped))


@dataclass(frozen=True, slots=True)
class _Order:
    """What one run is asked to do."""

    text: str
    style: str
    dry: bool
    ask: bool
    plan: TaskPlan | None = None
    edit: bool = False
    resume: str | None = None
    told: list[Final] = field(default_factory=list)
    """The ending, once it was shown: what is said twice looks like two endings."""


def _check(task: str | None, given: dict[str, Any]) -> None:
    if given["as_json"] and given["output_format"] not in (None, "json"):
        named = given["output_format"]
        raise UsageError(
            f"--json and --output-format {named} contradict each other", fix="Give one of them"
        )
    pairs = [
        ("ask", "yes"),
        ("plan", "resume"),
        ("plan", "plan_only"),
        ("plan_only", "resume"),
        ("plan_only", "dry_run"),
        ("dry_run", "resume"),
    ]
    for one, other in pairs:
        if given[one] and given[other]:
            names = [f"--{name.replace('_', '-')}" for name in (one, other)]
            raise UsageError(f"{' and '.join(names)} contradict each other", fix="Give one of them")
    if given["resume"] and task:
        raise UsageError("--resume takes up the task of its trace", fix="Leave --task out")


def _settings(given: dict[str, Any]) -> Settings:
    return settings_of(
        given["root"],
        allow_wide_root=given["allow_wide_root"],
        model_name=given["model"],
        fallback_models=given["fallback_model"] or None,
        planner=given["planner"],
        rollback_on_failure=given["rollback_on_failure"] or None,
        test_cmd=given["test_cmd"],
        lint_cmd=given["lint_cmd"],
        auto_test=given["auto_test"],
        repair=given["repair"],
        repair_all=given["repair_all"],
        repair_rounds=given["repair_rounds"],
        max_turns=given["max_turns"],
        timeout=given["timeout"],
        max_budget_usd=given["max_budget_usd"],
    )


async def _run(order: _Order, load: Callable[[], Settings]) -> Outcome:
    from evercontext.agent.planning import PlanChoice
    from evercontext.agent.task import new_trace_id
    from evercontext.app import EverContext
    from evercontext.cli.ask import asking_gate
    from evercontext.cli.first_run import with_model
    from evercontext.domain.tool import Mode
    from evercontext.tools.approval_gate import Gate

    # Nobody is asked for a model to take up what cannot be taken up.
    settings = load()
    err = Screen(sys.stderr, no_color=settings.no_color)
    before = _interrupted(order.resume, settings, err) if order.resume else None
    settings = await with_model(load, may_ask=order.style == "text")
    trace_id = before.trace_id if before else new_trace_id()
    view = _view(settings, order.style, err, trace_id)
    gate = asking_gate(err, view.pause) if order.ask else Gate()
    mode = Mode(before.task.mode) if before else Mode.DRY_RUN if order.dry else Mode.AGENT
    choice = PlanChoice(order.plan, editing(err) if order.edit else None, before)
    text = before.task.text if before else order.text
    async with EverContext.open(settings) as app:
        warn(app, err)
        gate = dataclasses.replace(gate, policy=await _permissions(app, order.ask, err))
        if order.ask:
            gate = dataclasses.replace(gate, ask=await _everywhere(app, gate.ask, err, view))
        stop = app.events.subscribe(_without_secrets(app, view, order.told))
        try:
            report = await app.run_task(
                text, mode=mode, gate=gate, trace_id=trace_id, choice=choice
            )
        finally:
            stop()
            view.pause()
    return report.outcome


def _interrupted(prefix: str, settings: Settings, err: Screen) -> Interrupted:
    from evercontext.agent.resumption import take_up
    from evercontext.cli.resume import latest
    from evercontext.cli.traces import events_of

    if prefix == "last":
        found = latest(settings, err)
    else:
        events = events_of(settings.traces, prefix)
        found = take_up(events[0].trace_id, events)
        found.check(settings.root, settings.home)
    return found


async def _everywhere(app: EverContext, ask: Ask, err: Screen, view: View) -> Ask:
    """Let an open web console answer too."""
    from evercontext.tools.console_approval import ask_everywhere

    def tell(text: str) -> None:
        view.pause()
        err.line(f"  {one_line(text)}", "bold")

    return await ask_everywhere(app.asking_place, ask, tell)


async def _permissions(app: EverContext, ask: bool, err: Screen) -> Permissions:
    """The rules of the project, and below them what is asked for whatever was allowed."""
    from evercontext.access.permissions import UNREAD, StoredRules, open_permissions

    root = str(app.settings.root.resolve())
    found = await open_permissions(StoredRules(app.store, root), root, yes=not ask)
    if found.unread:
        err.line(err.wrapped(f"warning: {UNREAD}"), "yellow")
    return found


def _view(settings: Settings, style: str, err: Screen, trace_id: str) -> View:
    from evercontext.cli.json_view import JsonView
    from evercontext.cli.render import TextView

    out = Screen(sys.stdout, no_color=settings.no_color)
    if style == "text":
        return TextView(out, err, trace_id, gateway_of(settings))
    return JsonView(out, trace_id, stream=style == "stream-json")


def _without_secrets(app: EverContext, view: View, told: list[Final]) -> Callable[[Event], None]:
    # What a run prints ends up in the logs of somebody's CI.
    from evercontext.events.redaction import redactor as redactor_of

    redactor = redactor_of(app.settings)

    def show(event: Event) -> None:
        view(Event.from_json(redactor.value(event.to_json())))
        if isinstance(event.body, Final):
            told.append(event.body)

    return show
