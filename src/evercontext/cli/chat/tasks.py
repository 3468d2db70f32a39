"""A plan in the chat: shown as a tree, changed by hand if wanted, and carried out."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from evercontext.cli.plan import tree_lines
from evercontext.cli.plan_file import edited_text, read_plan
from evercontext.cli.terminal import one_line
from evercontext.domain.tool import Mode
from evercontext.errors import InvalidPlan, UsageError

if TYPE_CHECKING:
    from evercontext.agent.plan import TaskPlan
    from evercontext.cli.chat.dialogue import Dialogue


async def tasks(dialogue: Dialogue, given: str) -> None:
    """Plan a goal, or read a plan file, and do it once the person says so."""
    if not given:
        raise UsageError("a plan needs a goal", fix="Say /tasks GOAL, or name a plan: /tasks FILE")
    plan = await _plan(dialogue, given)
    while True:
        for line in tree_lines(plan, dialogue.screen):
            dialogue.screen.line(f"  {line}")
        if dialogue.talk.mode is Mode.PLAN:
            return dialogue.say("plan mode changes nothing: switch with /agent to do it", "dim")
        dialogue.screen.line("  1  do it   2  change it in your editor   3  no")
        said = await dialogue.keyboard.answer("  1/2/3 > ", "123")
        if said == "1":
            return await dialogue.carry_out(plan.task or given, plan)
        if said != "2":
            return dialogue.say("nothing was done", "dim")
        plan = await _edited(dialogue, plan)


async def _plan(dialogue: Dialogue, given: str) -> TaskPlan:
    if given.endswith(".json"):
        return read_plan(given)

    dialogue.keyboard.show("… planning")
    model = dialogue.talk.model.info.name
    planned = await dialogue.app.plan_task(given, model_name=model)
    dialogue.screen.line(f"plan ({one_line(planned.source)})", "bold")
    return dataclasses.replace(planned.plan, task=planned.plan.task or given)


async def _edited(dialogue: Dialogue, plan: TaskPlan) -> TaskPlan:
    """The plan as the person left it; one that is wrong is said and the old one kept."""
    from evercontext.agent.plan import parse

    text = await _at_the_terminal(dialogue, plan)
    try:
        changed = parse(text) if text else plan
    except InvalidPlan as problem:
        dialogue.screen.line(f"error: {one_line(str(problem))}", "red")
        return plan
    return dataclasses.replace(changed, task=changed.task or plan.task)


async def _at_the_terminal(dialogue: Dialogue, plan: TaskPlan) -> str | None:
    if not (dialogue.keyboard.interactive and sys.stdin.isatty()):
        return edited_text(plan)
    from prompt_toolkit.application import run_in_terminal

    return await run_in_terminal(lambda: edited_text(plan), in_executor=True)
