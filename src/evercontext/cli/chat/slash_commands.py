"""The slash commands of the chat, and how a message finds its handler."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evercontext.cli.chat import info_commands, session_commands
from evercontext.cli.chat.custom_commands import CustomCommand, custom_commands, trust_command
from evercontext.cli.chat.plan_command import tasks
from evercontext.cli.messages import translate
from evercontext.cli.terminal import clip, one_line, visible
from evercontext.domain.tool import Mode
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.cli.chat.chat_session import ChatSession

Handler = Callable[["ChatSession", str], Awaitable[None]]


class SlashCommand(NamedTuple):
    """One command."""

    help: str
    handler: Handler


async def _help(chat: ChatSession, argument: str) -> None:
    width = max(map(len, SLASH_COMMANDS)) + 1
    for name, slash in SLASH_COMMANDS.items():
        chat.screen.line(f"  /{name.ljust(width)} {translate(slash.help)}")
    chat.screen.line()
    own = custom_commands_of(chat)
    for name, custom in own.items():
        state = "" if custom.trusted else translate(" (not trusted yet)")
        line = f"  /{name.ljust(width)} {one_line(custom.help)}{state}"
        chat.screen.line(clip(line, chat.screen.width - 1))
    if own:
        chat.screen.line()
    for keys, meaning in _KEYS:
        chat.screen.line(f"  {keys.ljust(width + 1)} {translate(meaning)}")


async def _plan(chat: ChatSession, argument: str) -> None:
    await _set_mode(chat, Mode.PLAN, argument)


async def _agent(chat: ChatSession, argument: str) -> None:
    await _set_mode(chat, Mode.AGENT, argument)


async def _mode(chat: ChatSession, argument: str) -> None:
    if argument not in ("", "plan", "agent"):
        raise UsageError(
            f"there is no mode {argument[:40]!r}", fix="Say `mode plan` or `mode agent`"
        )
    if argument:
        return await _set_mode(chat, Mode(argument), "")
    chat.toggle_mode()
    return await _set_mode(chat, chat.talk.mode, "")


async def _set_mode(chat: ChatSession, mode: Mode, goal: str) -> None:
    chat.talk.mode = mode
    meaning = {
        Mode.PLAN: "plan mode: it reads and plans, and can change nothing",
        Mode.AGENT: "agent mode: it changes files, and asks first",
    }
    chat.say(translate(meaning[mode]), "bold")
    if goal:
        await chat.ask(goal)


async def _model(chat: ChatSession, argument: str) -> None:
    from evercontext.app.conversations import switch_model

    if argument:
        await switch_model(chat.app, chat.talk, argument)
        name = chat.talk.model.info.name
        chat.say(translate("model {name}; the history stays", name=name), "bold")
        return
    await info_commands.show_models(chat)


async def _effort(chat: ChatSession, argument: str) -> None:
    from evercontext.domain.model import EFFORTS

    levels = {level: level for level in EFFORTS} | {"auto": None}
    if argument and argument not in levels:
        raise UsageError(f"not an effort: {argument[:40]}", fix=f"Use {', '.join(levels)}")
    if argument:
        await chat.talk.set_effort(levels[argument])
    level = chat.talk.effort or "auto"
    chat.say(translate("reasoning effort: {level}", level=level), "bold")


async def _theme(chat: ChatSession, argument: str) -> None:
    from evercontext.cli.theme import THEMES, theme, use_theme
    from evercontext.settings import keep

    if argument and argument not in THEMES:
        raise UsageError(f"not a theme: {argument[:40]}", fix=f"Use {', '.join(THEMES)}")
    if argument:
        keep(chat.app.settings.home, "theme", argument)
        use_theme(argument)
        chat.screen.colour = chat.screen.can_erase and argument != "none"
    chat.say(translate("theme: {name}", name=theme()), "bold")


async def _init(chat: ChatSession, argument: str) -> None:
    from importlib.resources import files

    prompt = (files("evercontext.agent") / "prompts" / "init.md").read_text("utf-8")
    await chat.ask(f"{prompt}\n{argument}".strip())


async def _review(chat: ChatSession, argument: str) -> None:
    await chat.ask(f"{_REVIEW} {argument}".strip())


async def _compact(chat: ChatSession, argument: str) -> None:
    chat.keyboard.show("… " + translate("compacting"))
    before, after = await chat.talk.compact(argument)
    text = translate(
        "compacted from {before} to {after} tokens; the originals are kept",
        before=f"{before:,}",
        after=f"{after:,}",
    )
    chat.say(text)


async def _quit(chat: ChatSession, argument: str) -> None:
    chat.leaving = True


SLASH_COMMANDS: dict[str, SlashCommand] = {
    "help": SlashCommand("this list", _help),
    "model": SlashCommand("[NAME] show the models, or go on with another one", _model),
    "effort": SlashCommand("[low|medium|high|auto] how much the model thinks", _effort),
    "theme": SlashCommand("[dark|light|none] the colours of the terminal", _theme),
    "plan": SlashCommand("[GOAL] plan mode: nothing can be changed", _plan),
    "tasks": SlashCommand(
        "[N] background commands; GOAL or FILE: plan in tasks and do them", tasks
    ),
    "agent": SlashCommand("[TASK] agent mode: changes, with your approval", _agent),
    "mode": SlashCommand("[plan|agent] switch the mode", _mode),
    "init": SlashCommand("let it write an AGENTS.md for this project", _init),
    "review": SlashCommand("[WHAT] let it review the changes that are not committed yet", _review),
    "compact": SlashCommand("[FOCUS] hand over the older part in short", _compact),
    "clear": SlashCommand("start a new session with an empty context", session_commands.begin),
    "new": SlashCommand("the same as /clear", session_commands.begin),
    "resume": SlashCommand(
        "[N|ID] list this directory's sessions, or take one up", session_commands.resume
    ),
    "fork": SlashCommand("go on in a copy of this session", session_commands.fork),
    "rewind": SlashCommand(
        "[N] [code|chat|both] go back to before a turn", session_commands.rewind
    ),
    "undo": SlashCommand(
        "[all] take back the files of the last turn; all: what the background changed, too",
        session_commands.undo,
    ),
    "diff": SlashCommand("what this session changed", info_commands.show_diffs),
    "context": SlashCommand("what fills the context window", info_commands.show_context),
    "skills": SlashCommand("what the agent can look up", info_commands.show_skills),
    "hooks": SlashCommand("commands that run around the agent's work", info_commands.show_hooks),
    "mcp": SlashCommand("outside tool servers", info_commands.show_servers),
    "search": SlashCommand("WORDS find code in this project", info_commands.search_code),
    "memory": SlashCommand(
        "[WORDS] what is remembered of this project", info_commands.show_memories
    ),
    "usage": SlashCommand("tokens and money of this session", info_commands.show_usage),
    "cost": SlashCommand("the same as /usage", info_commands.show_usage),
    "status": SlashCommand("session, model, mode, place", info_commands.show_status),
    "permissions": SlashCommand(
        "[allow|ask|deny RULE] [remove RULE] see and set rules", info_commands.permissions
    ),
    "export": SlashCommand("[FILE] write this session as Markdown", session_commands.export),
    "quit": SlashCommand("leave", _quit),
    "exit": SlashCommand("the same as /quit", _quit),
}
_REVIEW = """Review the changes of this project that are not committed yet: look at git status and \
the diff, and read what surrounds each change. Name what is wrong or risky, the worst first, each \
with its file and line and what to do instead; then what is missing (tests, docs). Change nothing. \
If there is nothing to say, say that."""
_KEYS = [
    ("@file", "give the model a file"),
    ("!command", "run a command yourself, in the sandbox"),
    ("!+network command", "the same with network; !+outside: outside the sandbox"),
    ("Ctrl-J", "a new line"),
    ("Ctrl-G", "write the message in your editor"),
    ("Shift+Tab", "plan mode and back"),
    ("Esc", "interrupt"),
    ("Esc Esc", "go back to before a turn"),
    ("Ctrl-D", "leave"),
]
BARE = frozenset({"plan", "agent", "mode", "model", "exit", "quit", "help"})
"""Commands that need no slash, where the message is the word alone."""
_COMMAND_NAME = re.compile(r"[A-Za-z][\w:-]*")
_WITH_ONE_ARGUMENT = frozenset({"mode", "model"})


async def handle_message(chat: ChatSession, text: str) -> None:
    """Do what a message asks of the chat; anything else goes to the model."""
    if text.isdigit() and (session := chat.choice(int(text))):
        return await session_commands.take_up(chat, session)
    chat.offered = []
    if text.startswith("!") and text[1:].strip():
        return await chat.shell(text[1:].strip())
    first, _, rest = text.partition(" ")
    if first.startswith("/") and _COMMAND_NAME.fullmatch(first[1:]):
        return await _command(chat, first[1:], rest.strip())
    words = text.split()
    if words[0] in BARE and len(words) <= 1 + (words[0] in _WITH_ONE_ARGUMENT):
        return await SLASH_COMMANDS[words[0]].handler(chat, rest.strip())
    return await chat.ask(text)


async def _command(chat: ChatSession, name: str, argument: str) -> None:
    if name not in SLASH_COMMANDS:
        import difflib

        own = custom_commands_of(chat)
        if name in own:
            return await _run_custom(chat, own[name], argument)
        near = difflib.get_close_matches(name, [*SLASH_COMMANDS, *own], n=1)
        fix = f"Did you mean /{near[0]}?" if near else "See /help"
        raise UsageError(f"there is no command /{name[:40]}", fix=fix)
    await SLASH_COMMANDS[name].handler(chat, argument)
    return None


def custom_commands_of(chat: ChatSession) -> dict[str, CustomCommand]:
    """Return the commands that the user or the project wrote."""
    settings = chat.app.settings
    return custom_commands(settings.root, settings.home, Path.home())


async def _run_custom(chat: ChatSession, custom: CustomCommand, argument: str) -> None:
    """Give the model the text of a file; a project's is shown and trusted first."""
    if not custom.trusted:
        chat.say(translate("{place} is part of this project:", place=custom.place), "bold")
        for line in visible(custom.content.decode("utf-8", "replace").rstrip()).split("\n"):
            chat.screen.line(f"  {line}")
        if not chat.keyboard.interactive:
            raise UsageError(f"/{custom.name} is not trusted", fix="Trust it in a terminal first")
        chat.screen.line("  1  " + translate("trust exactly this content, and run it"))
        chat.screen.line("  4  " + translate("no"))
        if await chat.keyboard.answer("  1/4 > ", "14") != "1":
            return chat.say(translate("nothing was done"), "dim")
        trust_command(custom, chat.app.settings.home)
    await chat.ask(custom.prompt(argument))
    return None
