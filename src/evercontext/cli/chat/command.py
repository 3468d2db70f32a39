"""``evercontext chat``: the conversation at the terminal, in a pipe, in a dumb terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evercontext import __version__
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import checks_options, gateway_of, root_option, settings_of, warn
from evercontext.cli.shorthand import is_task
from evercontext.cli.task_text import whole_task
from evercontext.cli.terminal import Screen, labelled, one_line
from evercontext.cli.value_completion import completing, models, sessions
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.app import EverContext
    from evercontext.cli.chat.chat_session import ChatSession
    from evercontext.cli.chat.keyboard import Keyboard

_LAST = "last"
_CHOOSE = ""
"""The value of -r without an id."""
_PERMISSION_MODES = ("default", "plan", "acceptEdits", "dontAsk", "bypassPermissions")


@click.command("chat")
@click.argument("prompt", metavar="[TEXT]", required=False)
@click.option(
    "-p",
    "--print",
    "print_text",
    is_flag=False,
    flag_value="",
    metavar="[TEXT]",
    help="Answer once on stdout and exit; a pipe is read along with it.",
)
@root_option
@click.option("-c", "--continue", "last", is_flag=True, help="Go on with the last session here.")
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value=_CHOOSE,
    metavar="[ID]",
    shell_complete=completing(sessions),
    help="Take up a session; without an id, choose it from a list.",
)
@click.option("--fork", is_flag=True, help="With -c or -r: go on in a copy.")
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
@click.option("--plan", is_flag=True, help="Begin in plan mode: nothing can be changed.")
@click.option("-y", "--yes", is_flag=True, help="Allow changes without asking.")
@click.option(
    "--permission-mode",
    type=click.Choice(_PERMISSION_MODES, case_sensitive=False),
    metavar="MODE",
    help="default, plan, acceptEdits, dontAsk (refuse) or bypassPermissions (--yes).",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    help="With -p: what stdout carries. Default: text.",
)
@checks_options
@click.option("--max-budget-usd", type=click.FloatRange(0), metavar="USD", help="Money per turn.")
def command(**options: Any) -> int:
    """Talk to the agent about a project.

    TEXT is the first message. It asks before every change and shows the diff. Sessions are kept by
    directory and can be taken up again. Without a terminal each line of stdin is a message, and
    whatever would need your approval is refused unless --yes is given; destructive commands are
    asked for even then.
    """
    _settle(options)
    return int(run_until_stopped(_chat(options)))


def _settle(options: dict[str, Any]) -> None:
    """Refuse contradictions, and write out what several options say together."""
    resumes = options["last"] or options["resume"] is not None
    if options["fork"] and not resumes:
        raise UsageError("--fork copies a session", fix="Name it with -r, or say -c")
    if options["resume"] and is_task(options["resume"]):
        # An id has no spaces: `-r "go on with this"` is a list, and then this.
        options["prompt"] = " ".join(filter(None, [options["resume"], options["prompt"]]))
        options["resume"] = _CHOOSE
    mode = options["permission_mode"]
    options["plan"] = options["plan"] or mode == "plan"
    options["yes"] = options["yes"] or mode == "bypassPermissions"
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    text = " ".join(filter(None, [options["print_text"], options["prompt"]]))
    prints = options["print_text"] is not None or (bool(options["prompt"]) and not at_terminal)
    if options["output_format"] and not prints:
        raise UsageError("--output-format belongs to -p", fix='Say: -p "..."')
    options["answer_once"] = whole_task(text or None) if prints else None
    if options["resume"] == _CHOOSE and (prints or not at_terminal):
        options["resume"] = _LAST


def _settings(options: dict[str, Any]) -> Settings:
    return settings_of(
        options["root"],
        allow_wide_root=options["allow_wide_root"],
        model_name=options["model"],
        reasoning_effort=options["effort"],
        test_cmd=options["test_cmd"],
        lint_cmd=options["lint_cmd"],
        auto_test=options["auto_test"],
        repair=options["repair"],
        repair_all=options["repair_all"],
        repair_rounds=options["repair_rounds"],
        max_budget_usd=options["max_budget_usd"],
    )


async def _chat(options: dict[str, Any]) -> Outcome:
    from evercontext.access.approval_rules import EDIT, AccessRule
    from evercontext.access.permissions import UNREAD, StoredRules, open_permissions
    from evercontext.app import EverContext
    from evercontext.cli.chat.chat_session import ChatSession
    from evercontext.cli.chat.print_mode import answer_once
    from evercontext.cli.chat.session_commands import leave
    from evercontext.cli.first_run import with_model

    once = options["answer_once"]
    settings = await with_model(lambda: _settings(options), may_ask=once is None)
    async with EverContext.open(settings) as app:
        # What -p prints is the answer alone.
        screen = Screen(sys.stdout if once is None else sys.stderr, no_color=settings.no_color)
        await _choose_session(app, options, screen)
        talk = await _conversation(app, options)
        warn(app, screen)
        if talk.problem:
            screen.line(screen.wrapped(labelled("warning", talk.problem)), "yellow")
        stored = StoredRules(app.store, talk.session.project_path)
        permissions = await open_permissions(stored, app.settings, yes=options["yes"])
        if options["permission_mode"] == "acceptEdits":
            permissions.session.append(AccessRule("allow", EDIT))
        if permissions.unread:
            screen.line(screen.wrapped(labelled("warning", UNREAD)), "yellow")
        chat = ChatSession(app, talk, screen, permissions, stored)
        chat.opening = options["prompt"] or ""
        chat.asks = options["permission_mode"] != "dontAsk"
        try:
            if once is not None:
                return await answer_once(
                    chat, once, options["output_format"] or "text", partial(_without_secrets, app)
                )
            return await _talk(chat)
        finally:
            await leave(chat)
            if once is None:
                _say_goodbye(chat)


async def _choose_session(app: EverContext, options: dict[str, Any], screen: Screen) -> None:
    """Let the person pick the session that -r left open."""
    if options["resume"] != _CHOOSE:
        return
    from evercontext.app.conversations import past_sessions
    from evercontext.cli.chat.session_picker import SessionPicker

    sessions = await past_sessions(app, 200)
    options["resume"] = None
    if sessions:
        chosen = await SessionPicker(sessions, colours=screen.colour).pick()
        options["resume"] = chosen.id if chosen else None
    else:
        screen.line(translate("this directory has no session yet"), "dim")


async def _conversation(app: EverContext, options: dict[str, Any]) -> Conversation:
    from evercontext.app.conversations import check_after_changes, open_conversation
    from evercontext.domain.tool import Mode

    talk = await open_conversation(
        app,
        resume=options["resume"] or (_LAST if options["last"] else None),
        fork=options["fork"],
        model_name=options["model"],
        mode=Mode.PLAN if options["plan"] else Mode.AGENT,
    )
    check_after_changes(app, talk)
    return talk


async def _talk(chat: ChatSession) -> Outcome:
    from evercontext.cli.chat.approval import ChatApproval
    from evercontext.cli.chat.slash_commands import handle_message
    from evercontext.cli.chat.view import ChatView
    from evercontext.tools.approval_gate import Ask, Gate, nobody
    from evercontext.tools.console_approval import ask_everywhere

    await _greet(chat)
    chat.keyboard = keyboard = _keyboard(chat)
    chat.view = view = ChatView(chat.screen, keyboard.show, keyboard.draw)
    here = ChatApproval(keyboard, chat.screen, view, chat.permissions, chat.stored)
    ask: Ask = nobody
    if keyboard.interactive and chat.asks:
        ask = await ask_everywhere(
            chat.app.asking_place, here, lambda text: _print_notice(chat, text)
        )
    chat.gate = Gate(chat.permissions, ask)
    stop = chat.app.events.subscribe(_without_secrets(chat.app, view))
    try:
        return await chat.run(handle_message)
    finally:
        stop()
        await keyboard.close()
        chat.screen = Screen(sys.stdout, no_color=chat.app.settings.no_color)


def _print_notice(chat: ChatSession, text: str) -> None:
    chat.screen.line(f"  {translate_composed(one_line(text))}", "bold")


async def _greet(chat: ChatSession) -> None:
    """Say what this is, and offer what was begun here before."""
    from evercontext.cli.chat import session_commands

    screen, talk = chat.screen, chat.talk
    if not screen.is_terminal:
        return
    screen.line(f"EverContext {__version__}", "bold")
    gateway = gateway_of(chat.app.settings)
    name = talk.model.info.name
    where = translate("{model} in {root}", model=name, root=talk.root)
    if gateway:
        where = translate("{model} on the files behind {gateway}", model=name, gateway=gateway)
    screen.line(one_line(where), "dim")
    if talk.history:
        title = one_line(talk.session.title or talk.session.id)
        screen.line(translate("back in: {session}", session=title), "bold")
        session_commands.show_end(chat)
    elif await _offered(chat):
        screen.line(
            translate("Type a number to take that session up, or just begin a new one."), "dim"
        )
    screen.line()


async def _offered(chat: ChatSession) -> bool:
    from evercontext.cli.chat import session_commands
    from evercontext.errors import StoreGone

    try:
        return await session_commands.offer(chat)
    except StoreGone:
        # Said at the start: a new session can begin without the old ones.
        return False


def _keyboard(chat: ChatSession) -> Keyboard:
    """The line editor where there is a terminal for it, plain lines everywhere else."""
    from evercontext.cli.chat.plain_keyboard import PlainKeyboard

    term = process_environment().get("TERM", "")
    if not (sys.stdin.isatty() and chat.screen.is_terminal) or term in ("", "dumb"):
        # Here Ctrl-C is a signal: it stops the turn, and at the prompt it leaves.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, _interrupted, chat)
        return PlainKeyboard(chat.screen)
    return _editor(chat)


def _interrupted(chat: ChatSession) -> None:
    if not chat.interrupt():
        os.kill(os.getpid(), signal.SIGTERM)


def _editor(chat: ChatSession) -> Keyboard:
    from evercontext.cli.chat.completer import ChatCompleter
    from evercontext.cli.chat.line_editor import Editor, EditorState
    from evercontext.cli.chat.slash_commands import SLASH_COMMANDS, custom_commands_of
    from evercontext.domain.tool import Mode

    settings = chat.app.settings
    state = EditorState(
        status=chat.status,
        progress=lambda: chat.view.clock.parts(),
        planning=lambda: chat.talk.mode is Mode.PLAN,
        working=chat.working,
        width=lambda: chat.screen.width,
    )

    def commands() -> dict[str, str]:
        own = {name: custom.help for name, custom in custom_commands_of(chat).items()}
        return own | {name: translate(slash.help) for name, slash in SLASH_COMMANDS.items()}

    editor = Editor(
        state,
        ChatCompleter(settings.root, commands),
        settings.home / "history",
        chat.interrupt,
        chat.toggle_mode,
        chat.say,
        chat.app.memory.clean,
        colours=chat.screen.colour,
    )
    chat.keyboard = editor
    editor.open()
    # From here on what is printed goes above the editor.
    chat.screen = Screen(sys.stdout, no_color=settings.no_color)
    return editor


def _without_secrets(app: EverContext, view: Callable[[Any], None]) -> Callable[[Any], None]:
    from evercontext.domain.event import Event
    from evercontext.events.redaction import redactor as redactor_of

    redactor = redactor_of(app.settings)
    return lambda event: view(Event.from_json(redactor.value(event.to_json())))


def _say_goodbye(chat: ChatSession) -> None:
    if chat.screen.is_terminal and chat.talk.history:
        short = chat.talk.session.id
        chat.screen.line(
            translate("take it up again: evercontext -r {session}", session=short), "dim"
        )
