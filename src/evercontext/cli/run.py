"""``evercontext run``: one task, unattended, with an exit code that tells the truth."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from evercontext.cli.images import read_images
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate_composed
from evercontext.cli.options import checks_options, gateway_of, root_option, settings_of, warn
from evercontext.cli.plan_file import editing, read_plan
from evercontext.cli.task_text import whole_task
from evercontext.cli.terminal import Screen, labelled, one_line
from evercontext.cli.value_completion import completing, models, traces
from evercontext.domain.event import Event, Final
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.errors import Cancelled, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.access.permissions import Permissions
    from evercontext.agent.plan import TaskPlan
    from evercontext.agent.resumption import Interrupted
    from evercontext.app import EverContext
    from evercontext.cli.render import TextView
    from evercontext.tools.approval_gate import Ask


class TaskView(Protocol):
    """Something that shows a task."""

    def __call__(self, event: Event) -> None:
        """Take one event."""

    def pause(self) -> None:
        """End an unfinished line."""


@click.command("run")
@click.argument("text", metavar="[TASK]", required=False)
@click.option("-t", "--task", "-p", "--prompt", "task", metavar="TEXT", help="What to do.")
@root_option
@click.option("--dry-run", is_flag=True, help="Show calls and diffs; write nothing.")
@click.option("--ask", is_flag=True, help="Ask before every change, with its diff.")
@click.option("-y", "--yes", is_flag=True, help="Never ask (the default here).")
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    shell_complete=completing(models),
    help="provider:model, see `model list`.",
)
@click.option(
    "--effort", type=click.Choice(["low", "medium", "high"]), help="How much the model thinks."
)
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
@click.option(
    "--resume",
    metavar="TRACE",
    shell_complete=completing(traces),
    help="Finish a task that was cut off; `last` works.",
)
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
@click.option(
    "-i",
    "--image",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A picture for a model that sees; may be repeated.",
)
@click.option(
    "--allow-network",
    metavar="COMMAND",
    multiple=True,
    help='Commands that may use the network, such as "npm install *"; may be repeated.',
)
@click.option(
    "--allow-outside",
    metavar="COMMAND",
    multiple=True,
    help="Commands that may run outside the sandbox; may be repeated.",
)
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Model calls at most.")
@click.option("--timeout", type=click.FloatRange(0.001), metavar="SECONDS", help="Time at most.")
@click.option("--max-budget-usd", type=click.FloatRange(0), metavar="USD", help="Money at most.")
def command(text: str | None, task: str | None, **options: Any) -> int:
    """Do one task in a project, unattended.

    The task is the argument or --task, stdin, or both together. Writes stay inside the root
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
      evercontext run "Add a --version flag to app/main.py"
      git diff | evercontext run "Write tests for this change"
      evercontext run --dry-run "..." > change.patch
      evercontext run --plan plan.json --rollback-on-failure
    """
    if text is not None and task is not None:
        raise UsageError("the task is named twice", fix="Give it as the argument or with --task")
    task = text if task is None else task
    _check(task, options)
    settings = _settings(options)
    plan = read_plan(options["plan"]) if options["plan"] else None
    goal = (plan.task if plan and not task else "") or (
        "" if options["resume"] else whole_task(task)
    )
    if options["plan_only"]:
        from evercontext.cli.plan import Showing, show_plan

        how = Showing(
            options["as_json"] or options["output_format"] in ("json", "stream-json"),
            None,
            options["edit_plan"],
        )
        return int(run_until_stopped(show_plan(goal, settings, how)))
    style = "json" if options["as_json"] else options["output_format"] or "text"
    order = _Order(
        goal,
        style,
        options["dry_run"],
        options["ask"],
        plan,
        options["edit_plan"],
        options["resume"],
        options["image"],
    )
    try:
        return int(run_until_stopped(_run(order, lambda: _settings(options))))
    except Cancelled as stopped:
        if not order.endings:
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
    images: tuple[Path, ...] = ()
    endings: list[Final] = field(default_factory=list)
    """The ending, once it was shown: what is said twice looks like two endings."""


def _check(task: str | None, options: dict[str, Any]) -> None:
    if options["as_json"] and options["output_format"] not in (None, "json"):
        named = options["output_format"]
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
    for first, other in pairs:
        if options[first] and options[other]:
            names = [f"--{name.replace('_', '-')}" for name in (first, other)]
            raise UsageError(f"{' and '.join(names)} contradict each other", fix="Give one of them")
    if options["resume"] and task:
        raise UsageError("--resume takes up the task of its trace", fix="Leave --task out")


def _settings(options: dict[str, Any]) -> Settings:
    return settings_of(
        options["root"],
        allow_wide_root=options["allow_wide_root"],
        model_name=options["model"],
        fallback_models=options["fallback_model"] or None,
        planner=options["planner"],
        rollback_on_failure=options["rollback_on_failure"] or None,
        test_cmd=options["test_cmd"],
        lint_cmd=options["lint_cmd"],
        auto_test=options["auto_test"],
        repair=options["repair"],
        repair_all=options["repair_all"],
        repair_rounds=options["repair_rounds"],
        reasoning_effort=options["effort"],
        allow_network=options["allow_network"] or None,
        allow_outside=options["allow_outside"] or None,
        max_turns=options["max_turns"],
        timeout=options["timeout"],
        max_budget_usd=options["max_budget_usd"],
    )


async def _run(order: _Order, load: Callable[[], Settings]) -> Outcome:
    from evercontext.agent.plan_sources import PlanChoice
    from evercontext.agent.task import new_trace_id
    from evercontext.app import EverContext
    from evercontext.cli.first_run import with_model
    from evercontext.cli.render import TextView
    from evercontext.cli.run_approval import asking_gate
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
        stop = app.events.subscribe(_without_secrets(app, view, order.endings))
        ticking = asyncio.create_task(_tick(view)) if isinstance(view, TextView) else None
        try:
            report = await app.run_task(
                text,
                mode=mode,
                gate=gate,
                trace_id=trace_id,
                choice=choice,
                images=await read_images(list(order.images)),
            )
        finally:
            if ticking:
                ticking.cancel()
            stop()
            view.pause()
    return report.outcome


async def _tick(view: TextView) -> None:
    while True:
        await asyncio.sleep(0.5)
        view.tick()


def _interrupted(prefix: str, settings: Settings, err: Screen) -> Interrupted:
    from evercontext.agent.resumption import take_up
    from evercontext.cli.resume import latest
    from evercontext.cli.trace_lookup import events_of

    if prefix == "last":
        interrupted = latest(settings, err)
    else:
        events = events_of(settings.traces, prefix)
        interrupted = take_up(events[0].trace_id, events)
        interrupted.check(settings.root, settings.home)
    return interrupted


async def _everywhere(app: EverContext, ask: Ask, err: Screen, view: TaskView) -> Ask:
    """Let an open web console answer too."""
    from evercontext.tools.console_approval import ask_everywhere

    def tell(text: str) -> None:
        view.pause()
        err.line(f"  {translate_composed(one_line(text))}", "bold")

    return await ask_everywhere(app.asking_place, ask, tell)


async def _permissions(app: EverContext, ask: bool, err: Screen) -> Permissions:
    """The rules of the project, and below them what is asked for whatever was allowed."""
    from evercontext.access.permissions import UNREAD, StoredRules, open_permissions

    root = str(app.settings.root.resolve())
    permissions = await open_permissions(StoredRules(app.store, root), app.settings, yes=not ask)
    if permissions.unread:
        err.line(err.wrapped(labelled("warning", UNREAD)), "yellow")
    return permissions


def _view(settings: Settings, style: str, err: Screen, trace_id: str) -> TaskView:
    from evercontext.cli.json_view import JsonView
    from evercontext.cli.render import TextView

    out = Screen(sys.stdout, no_color=settings.no_color)
    if style == "text":
        return TextView(out, err, trace_id, gateway_of(settings))
    return JsonView(out, trace_id, stream=style == "stream-json")


def _without_secrets(
    app: EverContext, view: TaskView, endings: list[Final]
) -> Callable[[Event], None]:
    # What a run prints ends up in the logs of somebody's CI.
    from evercontext.events.redaction import redactor as redactor_of

    redactor = redactor_of(app.settings)

    def show(event: Event) -> None:
        view(Event.from_json(redactor.value(event.to_json())))
        if isinstance(event.body, Final):
            endings.append(event.body)

    return show
