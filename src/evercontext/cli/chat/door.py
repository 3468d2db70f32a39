"""``evercontext chat``: the conversation at the terminal, in a pipe, in a dumb terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from evercontext import __version__
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import checks_options, gateway_of, root_option, settings_of, warn
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.app import EverContext
    from evercontext.cli.chat.dialogue import Dialogue
    from evercontext.cli.chat.keyboard import Keyboard

_LAST = "last"


@click.command("chat")
@root_option
@click.option("-c", "--continue", "last", is_flag=True, help="Go on with the last session here.")
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value=_LAST,
    metavar="[ID]",
    help="Take up a session; the beginning of its id is enough.",
)
@click.option("--fork", is_flag=True, help="With -c or -r: go on in a copy.")
@click.option("-m", "--model", metavar="NAME", help="provider:model, see `model list`.")
@click.option("--plan", is_flag=True, help="Begin in plan mode: nothing can be changed.")
@click.option("-y", "--yes", is_flag=True, help="Allow changes without asking.")
@checks_options
@click.option("--max-budget-usd", type=click.FloatRange(0), metavar="USD", help="Money per turn.")
def command(**given: Any) -> int:
    """Talk to the agent about a project.

    It asks before every change and shows the diff. Sessions are kept by directory and can be
    taken up again. Without a terminal each line of stdin is a message, and whatever would need
    your approval is refused unless --yes is given; destructive commands are asked for even then.
    """
    if given["fork"] and not (given["last"] or given["resume"]):
        raise UsageError("--fork copies a session", fix="Name it with -r, or say -c")
    return int(run_until_stopped(_chat(given)))


def _settings(given: dict[str, Any]) -> Settings:
    return settings_of(
        given["root"],
        allow_wide_root=given["allow_wide_root"],
        model_name=given["model"],
        test_cmd=given["test_cmd"],
        lint_cmd=given["lint_cmd"],
        auto_test=given["auto_test"],
        repair=given["repair"],
        repair_all=given["repair_all"],
        repair_rounds=given["repair_rounds"],
        max_budget_usd=given["max_budget_usd"],
    )


async def _chat(given: dict[str, Any]) -> Outcome:
    from evercontext.access.permissions import UNREAD, StoredRules, open_permissions
    from evercontext.app import EverContext
    from evercontext.cli.chat.dialogue import Dialogue
    from evercontext.cli.chat.past import leave
    from evercontext.cli.first_run import with_model

    settings = await with_model(lambda: _settings(given))
    async with EverContext.open(settings) as app:
        talk = await _conversation(app, given)
        screen = Screen(sys.stdout, no_color=settings.no_color)
        warn(app, screen)
        if talk.problem:
            screen.line(screen.wrapped(f"warning: {one_line(talk.problem)}"), "yellow")
        stored = StoredRules(app.store, talk.session.project_path)
        root = str(settings.root.resolve())
        permissions = await open_permissions(stored, root, yes=given["yes"])
        if permissions.unread:
            screen.line(screen.wrapped(f"warning: {UNREAD}"), "yellow")
        dialogue = Dialogue(app, talk, screen, permissions, stored)
        try:
            return await _talk(dialogue)
        finally:
            await leave(dialogue)
            _say_goodbye(dialogue)


async def _conversation(app: EverContext, given: dict[str, Any]) -> Conversation:
    from evercontext.agent.project_repair import checks_and_repair
    from evercontext.app.conversations import open_conversation
    from evercontext.domain.tool import Mode

    talk = await open_conversation(
        app,
        resume=given["resume"] or (_LAST if given["last"] else None),
        fork=given["fork"],
        model_name=given["model"],
        mode=Mode.PLAN if given["plan"] else Mode.AGENT,
    )
    checks = app.checks(detect=bool(app.settings.auto_test))
    talk.verify, talk.repair = checks_and_repair(
        checks, app.settings, app.workspace, by_default=False, tiny=talk.model.info.tiny
    )
    return talk


async def _talk(dialogue: Dialogue) -> Outcome:
    from evercontext.cli.chat.asking import ChatAsk
    from evercontext.cli.chat.view import ChatView
    from evercontext.cli.chat.words import obey
    from evercontext.tools.approval_gate import Ask, Gate, nobody
    from evercontext.tools.console_approval import ask_everywhere

    await _greet(dialogue)
    dialogue.keyboard = keyboard = _keyboard(dialogue)
    dialogue.view = view = ChatView(dialogue.screen, keyboard.show)
    here = ChatAsk(keyboard, dialogue.screen, view, dialogue.permissions, dialogue.stored)
    ask: Ask = nobody
    if keyboard.interactive:
        ask = await ask_everywhere(
            dialogue.app.asking_place, here, lambda text: _told(dialogue, text)
        )
    dialogue.gate = Gate(dialogue.permissions, ask)
    stop = dialogue.app.events.subscribe(_without_secrets(dialogue.app, view))
    try:
        return await dialogue.run(obey)
    finally:
        stop()
        await keyboard.close()
        dialogue.screen = Screen(sys.stdout, no_color=dialogue.app.settings.no_color)


def _told(dialogue: Dialogue, text: str) -> None:
    dialogue.screen.line(f"  {one_line(text)}", "bold")


async def _greet(dialogue: Dialogue) -> None:
    """Say what this is, and offer what was begun here before."""
    from evercontext.cli.chat import past

    screen, talk = dialogue.screen, dialogue.talk
    if not screen.is_terminal:
        return
    screen.line(f"EverContext {__version__}", "bold")
    gateway = gateway_of(dialogue.app.settings)
    place = f"on the files behind {gateway}" if gateway else f"in {talk.root}"
    screen.line(one_line(f"{talk.model.info.name} {place}"), "dim")
    if talk.history:
        screen.line(f"back in: {one_line(talk.session.title or talk.session.id)}", "bold")
        past.show_end(dialogue)
    elif await _offered(dialogue):
        screen.line("Type a number to take that session up, or just begin a new one.", "dim")
    screen.line()


async def _offered(dialogue: Dialogue) -> bool:
    from evercontext.cli.chat import past
    from evercontext.errors import StoreGone

    try:
        return await past.offer(dialogue)
    except StoreGone:
        # Said at the start: a new session can begin without the old ones.
        return False


def _keyboard(dialogue: Dialogue) -> Keyboard:
    """The line editor where there is a terminal for it, plain lines everywhere else."""
    from evercontext.cli.chat.plain import PlainKeyboard

    term = process_environment().get("TERM", "")
    if not (sys.stdin.isatty() and dialogue.screen.is_terminal) or term in ("", "dumb"):
        # Here Ctrl-C is a signal: it stops the turn, and at the prompt it leaves.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, _interrupted, dialogue)
        return PlainKeyboard(dialogue.screen)
    return _editor(dialogue)


def _interrupted(dialogue: Dialogue) -> None:
    if not dialogue.interrupt():
        os.kill(os.getpid(), signal.SIGTERM)


def _editor(dialogue: Dialogue) -> Keyboard:
    from evercontext.cli.chat.completion import ChatCompleter
    from evercontext.cli.chat.editor import Editor, Looks
    from evercontext.cli.chat.words import WORDS
    from evercontext.domain.tool import Mode

    settings = dialogue.app.settings
    looks = Looks(
        status=dialogue.status,
        planning=lambda: dialogue.talk.mode is Mode.PLAN,
        working=dialogue.working,
        width=lambda: dialogue.screen.width,
    )
    commands = {name: word.help for name, word in WORDS.items()}
    editor = Editor(
        looks,
        ChatCompleter(settings.root, commands),
        settings.home / "history",
        dialogue.interrupt,
        dialogue.toggle_mode,
        dialogue.say,
        dialogue.app.memory.clean,
        colours=dialogue.screen.colour,
    )
    dialogue.keyboard = editor
    editor.open()
    # From here on what is printed goes above the editor.
    dialogue.screen = Screen(sys.stdout, no_color=settings.no_color)
    return editor


def _without_secrets(app: EverContext, view: Callable[[Any], None]) -> Callable[[Any], None]:
    from evercontext.domain.event import Event
    from evercontext.events.redaction import redactor as redactor_of

    redactor = redactor_of(app.settings)
    return lambda event: view(Event.from_json(redactor.value(event.to_json())))


def _say_goodbye(dialogue: Dialogue) -> None:
    if dialogue.screen.is_terminal and dialogue.talk.history:
        short = dialogue.talk.session.id
        dialogue.screen.line(f"take it up again: evercontext chat -r {short}", "dim")
