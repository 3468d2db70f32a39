"""``/tasks``: the commands that run in the background of this session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import clip, one_line, visible

if TYPE_CHECKING:
    from evercontext.cli.chat.chat_session import ChatSession
    from evercontext.workspace.background_commands import BackgroundCommand

_MOST_LINES = 40
_ABOUT_ONE = re.compile(r"(stop )?#?(\d+)")


def is_about_background(argument: str) -> bool:
    """Tell a look at background commands from a goal that is to be planned."""
    return not argument or bool(_ABOUT_ONE.fullmatch(argument))


async def show_background(chat: ChatSession, argument: str) -> None:
    """List the commands, show the output of one, or stop one."""
    commands, session = chat.app.background, chat.talk.session.id
    match = _ABOUT_ONE.fullmatch(argument)
    if commands is None or not (match or commands.of(session)):
        return chat.say(translate("no command runs in the background; /tasks GOAL plans"), "dim")
    if match is None:
        for command in commands.of(session):
            chat.screen.line(clip(f"  {_about(command)}", chat.screen.width - 1))
        return chat.say(translate("/tasks N shows its output, /tasks stop N ends it"), "dim")
    command = commands.find(match[2], session)
    if match[1]:
        await commands.stop(command)
    else:
        # The model has not seen it because a person has.
        unread = command.unread
        lines = visible(command.output(new=False).rstrip("\n")).split("\n")
        command.unread = unread
        for line in lines[-_MOST_LINES:]:
            chat.screen.line(f"  {clip(line, chat.screen.width - 3)}")
    return chat.screen.line(clip(_about(command), chat.screen.width - 1), "bold")


def _about(command: BackgroundCommand) -> str:
    status = translate_composed(one_line(command.status()))
    return f"{command.id}  {one_line(command.line)}  ({status})"
