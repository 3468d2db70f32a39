"""A plan in the chat: shown as a tree, changed by hand if wanted, and carried out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from evercontext.cli.chat.background_tasks import is_about_background, show_background
from evercontext.cli.messages import translate
from evercontext.cli.plan import tree_lines
from evercontext.cli.plan_file import edited_text, read_plan
from evercontext.cli.terminal import labelled, one_line
from evercontext.domain.tool import Mode
from evercontext.errors import InvalidPlan

if TYPE_CHECKING:
    from evercontext.agent.plan import TaskPlan
    from evercontext.cli.chat.chat_session import ChatSession


async def tasks(chat: ChatSession, argument: str) -> None:
    """Plan a goal, or read a plan file, and do it once the person says so."""
    if is_about_background(argument):
        return await show_background(chat, argument)
    plan = await _plan(chat, argument)
    while True:
        for line in tree_lines(plan, chat.screen):
            chat.screen.line(f"  {line}")
        if chat.talk.mode is Mode.PLAN:
            return chat.say(
                translate("plan mode changes nothing: switch with /agent to do it"), "dim"
            )
        for number, text in enumerate(("do it", "change it in your editor", "no"), start=1):
            chat.screen.line(f"  {number}  {translate(text)}")
        typed = await chat.keyboard.answer("  1/2/3 > ", "123")
        if typed == "1":
            return await chat.carry_out(plan.task or argument, plan)
        if typed != "2":
            return chat.say(translate("nothing was done"), "dim")
        plan = await _edited(chat, plan)


async def _plan(chat: ChatSession, argument: str) -> TaskPlan:
    if argument.endswith(".json"):
        return read_plan(argument)

    chat.keyboard.show("… " + translate("planning"))
    model = chat.talk.model.info.name
    planned = await chat.app.plan_task(argument, model_name=model)
    chat.screen.line(translate("plan ({source})", source=one_line(planned.source)), "bold")
    return dataclasses.replace(planned.plan, task=planned.plan.task or argument)


async def _edited(chat: ChatSession, plan: TaskPlan) -> TaskPlan:
    """The plan as the person left it; one that is wrong is said and the old one kept."""
    from evercontext.agent.plan import parse

    text = await chat.keyboard.lend(lambda: edited_text(plan))
    try:
        changed = parse(text) if text else plan
    except InvalidPlan as problem:
        chat.screen.line(chat.screen.wrapped(labelled("error", str(problem))), "red")
        return plan
    return dataclasses.replace(changed, task=changed.task or plan.task)
