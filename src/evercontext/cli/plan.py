"""``evercontext plan``: what would be done, and in which order; nothing is done."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import root_option, settings_of, warn
from evercontext.cli.plan_file import editing, write_plan
from evercontext.cli.task_text import whole_task
from evercontext.cli.terminal import Screen, clip, columns_of, counted, one_line
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.agent.plan import PlanTask, TaskPlan
    from evercontext.agent.planner import Planned


@click.command("plan")
@click.option("-t", "--task", "-p", "--prompt", "task", metavar="TEXT", help="What to plan.")
@root_option
@click.option("--planner", metavar="NAME", help="Model that plans. Default: EC_PLANNER.")
@click.option("-m", "--model", metavar="NAME", help="Model that would do it; plans if no planner.")
@click.option("--edit", is_flag=True, help="Change the plan in your editor.")
@click.option("--no-cache", is_flag=True, help="Ask again, also if this was planned before.")
@click.option("-o", "--output", metavar="FILE", help="Write the plan there, for `run --plan`.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as `run --plan` reads it.")
def command(task: str | None, **options: Any) -> int:
    """Plan a task without doing it.

    The planner sees the files, what a search for the task finds, and what is remembered. The same
    task in the same tree gives the same plan.

    \b
    Examples
      evercontext plan --task "Add a health endpoint" -o plan.json
      evercontext run --plan plan.json
    """
    text = whole_task(task)
    settings = settings_of(
        options["root"],
        allow_wide_root=options["allow_wide_root"],
        planner=options["planner"],
        model_name=options["model"],
        plan_cache=False if options["no_cache"] else None,
    )
    shown = Showing(options["as_json"], options["output"], options["edit"])
    return int(run_until_stopped(show_plan(text, settings, shown)))


@dataclasses.dataclass(frozen=True, slots=True)
class Showing:
    """How a plan is given to the user."""

    as_json: bool = False
    output: str | None = None
    edit: bool = False


async def show_plan(text: str, settings: Settings, how: Showing) -> Outcome:
    """Make the plan and print it."""
    from evercontext.agent.task import new_trace_id
    from evercontext.app import EverContext

    trace_id, err = new_trace_id(), Screen(sys.stderr, no_color=settings.no_color)
    edit = editing(err) if how.edit else None
    async with EverContext.open(settings) as app:
        warn(app, err)
        planned = await app.plan_task(text, trace_id=trace_id, edit=edit)
    plan = dataclasses.replace(planned.plan, task=planned.plan.task or text)
    document = json.dumps(plan.to_json(), indent=2, ensure_ascii=False)
    if how.output:
        write_plan(Path(how.output), document)
    if how.as_json:
        print(document)
    else:
        out = Screen(sys.stdout, no_color=settings.no_color)
        out.line(_head(planned), "bold")
        for line in tree_lines(plan, out):
            out.line(line)
    err.line(translate("trace {id}", id=trace_id), "dim")
    if how.output:
        err.line(f"      evercontext run --plan {how.output}   {translate('do it')}", "dim")
    return Outcome.DONE


def _head(planned: Planned) -> str:
    plan = translate("plan ({source})", source=one_line(planned.source))
    return f"{plan}, {counted(len(planned.plan.tasks), 'task')}"


def tree_lines(plan: TaskPlan, screen: Screen) -> list[str]:
    """The tasks as a tree: each below the last one it waits for."""
    order = plan.in_order()
    place = {task.id: number for number, task in enumerate(order)}
    below: dict[str | None, list[PlanTask]] = {}
    for task in order:
        parent = max(task.depends_on, key=place.__getitem__, default=None)
        below.setdefault(parent, []).append(task)
    lines: list[str] = []

    def grow(parent: str | None, lead: str) -> None:
        for task in below.get(parent, []):
            last = task is below[parent][-1]
            head = f"{lead}{'└─ ' if last else '├─ '}"
            rest = lead + ("   " if last else "│  ")
            lines.extend(_task_lines(task, parent, head, rest, screen))
            grow(task.id, rest)

    grow(None, "")
    return lines


def _task_lines(
    task: PlanTask, parent: str | None, head: str, rest: str, screen: Screen
) -> list[str]:
    name = one_line(task.id)
    room = max(20, screen.width - columns_of(head) - columns_of(name) - 2)
    lines = [f"{head}{screen.paint(name, 'bold')}  {clip(one_line(task.title), room)}"]
    also = [needed for needed in task.depends_on if needed != parent]
    on_error = task.on_error if task.on_error != "stop" else ""
    named = {
        "files: {what}": ", ".join(task.files),
        "also after: {what}": ", ".join(also),
        "checks: {what}": "; ".join(task.checks),
        "on error: {what}": on_error,
    }
    facts = [translate(text, what=what) for text, what in named.items() if what]
    room = max(20, screen.width - columns_of(rest) - 3)
    return lines + [f"{rest}   {screen.paint(clip(one_line(f), room), 'dim')}" for f in facts]
