"""What can be said to the chat itself: words and slash commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from evercontext.cli.chat import looking, past
from evercontext.cli.chat.tasks import tasks
from evercontext.domain.tool import Mode
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.cli.chat.dialogue import Dialogue

Handler = Callable[["Dialogue", str], Awaitable[None]]


class Word(NamedTuple):
    """One command."""

    help: str
    handler: Handler


async def _help(dialogue: Dialogue, given: str) -> None:
    width = max(map(len, WORDS)) + 1
    for name, word in WORDS.items():
        dialogue.screen.line(f"  /{name.ljust(width)} {word.help}")
    dialogue.screen.line()
    for keys, meaning in _KEYS:
        dialogue.screen.line(f"  {keys.ljust(width + 1)} {meaning}")


async def _plan(dialogue: Dialogue, given: str) -> None:
    await _set_mode(dialogue, Mode.PLAN, given)


async def _agent(dialogue: Dialogue, given: str) -> None:
    await _set_mode(dialogue, Mode.AGENT, given)


async def _mode(dialogue: Dialogue, given: str) -> None:
    if given not in ("", "plan", "agent"):
        raise UsageError(f"there is no mode {given[:40]!r}", fix="Say `mode plan` or `mode agent`")
    if given:
        return await _set_mode(dialogue, Mode(given), "")
    dialogue.toggle_mode()
    return await _set_mode(dialogue, dialogue.talk.mode, "")


async def _set_mode(dialogue: Dialogue, mode: Mode, given: str) -> None:
    dialogue.talk.mode = mode
    meaning = {
        Mode.PLAN: "plan mode: it reads and plans, and can change nothing",
        Mode.AGENT: "agent mode: it changes files, and asks first",
    }
    dialogue.say(meaning[mode], "bold")
    if given:
        await dialogue.ask(given)


async def _model(dialogue: Dialogue, given: str) -> None:
    from evercontext.app.conversations import switch_model

    if given:
        await switch_model(dialogue.app, dialogue.talk, given)
        dialogue.say(f"model {dialogue.talk.model.info.name}; the history stays", "bold")
        return
    await looking.show_models(dialogue)


async def _init(dialogue: Dialogue, given: str) -> None:
    from importlib.resources import files

    prompt = (files("evercontext.agent") / "prompts" / "init.md").read_text("utf-8")
    await dialogue.ask(f"{prompt}\n{given}".strip())


async def _compact(dialogue: Dialogue, given: str) -> None:
    dialogue.keyboard.show("… compacting")
    before, after = await dialogue.talk.compact(given)
    dialogue.say(f"compacted from {before:,} to {after:,} tokens; the originals are kept")


async def _quit(dialogue: Dialogue, given: str) -> None:
    dialogue.leaving = True


WORDS: dict[str, Word] = {
    "help": Word("this list", _help),
    "model": Word("[NAME] show the models, or go on with another one", _model),
    "plan": Word("[GOAL] plan mode: nothing can be changed", _plan),
    "tasks": Word("GOAL|FILE plan in tasks, look at them, change them, do them", tasks),
    "agent": Word("[TASK] agent mode: changes, with your approval", _agent),
    "mode": Word("[plan|agent] switch the mode", _mode),
    "init": Word("let it write an AGENTS.md for this project", _init),
    "compact": Word("[FOCUS] hand over the older part in short", _compact),
    "clear": Word("start a new session with an empty context", past.begin),
    "new": Word("the same as /clear", past.begin),
    "resume": Word("[N|ID] list this directory's sessions, or take one up", past.resume),
    "fork": Word("go on in a copy of this session", past.fork),
    "rewind": Word("[N] [code|chat|both] go back to before a turn", past.rewind),
    "undo": Word("take back the files of the last turn", past.undo),
    "diff": Word("what this session changed", looking.show_diffs),
    "context": Word("what fills the context window", looking.show_context),
    "skills": Word("what the agent can look up", looking.show_skills),
    "hooks": Word("commands that run around the agent's work", looking.show_hooks),
    "mcp": Word("outside tool servers", looking.show_servers),
    "search": Word("WORDS find code in this project", looking.search_code),
    "memory": Word("[WORDS] what is remembered of this project", looking.show_memories),
    "usage": Word("tokens and money of this session", looking.show_usage),
    "cost": Word("the same as /usage", looking.show_usage),
    "status": Word("session, model, mode, place", looking.show_status),
    "permissions": Word(
        "[allow|ask|deny RULE] [remove RULE] see and set rules", looking.permissions
    ),
    "export": Word("[FILE] write this session as Markdown", past.export),
    "quit": Word("leave", _quit),
    "exit": Word("the same as /quit", _quit),
}
_KEYS = [
    ("@file", "give the model a file"),
    ("!command", "run a command yourself, in the cage"),
    ("Ctrl-J", "a new line"),
    ("Shift+Tab", "plan mode and back"),
    ("Esc", "interrupt"),
    ("Ctrl-D", "leave"),
]
BARE = frozenset({"plan", "agent", "mode", "model", "exit", "quit", "help"})
"""Commands that need no slash, where the message is the word alone."""
_WITH_ONE_ARGUMENT = frozenset({"mode", "model"})


async def obey(dialogue: Dialogue, text: str) -> None:
    """Do what a message asks of the chat; anything else goes to the model."""
    if text.isdigit() and (session := dialogue.choice(int(text))):
        return await past.take_up(dialogue, session)
    dialogue.offered = []
    if text.startswith("!") and text[1:].strip():
        return await dialogue.shell(text[1:].strip())
    first, _, rest = text.partition(" ")
    if first.startswith("/") and first[1:].replace("_", "").isalpha():
        return await _command(dialogue, first[1:], rest.strip())
    words = text.split()
    if words[0] in BARE and len(words) <= 1 + (words[0] in _WITH_ONE_ARGUMENT):
        return await WORDS[words[0]].handler(dialogue, rest.strip())
    return await dialogue.ask(text)


async def _command(dialogue: Dialogue, name: str, given: str) -> None:
    if name not in WORDS:
        import difflib

        near = difflib.get_close_matches(name, WORDS, n=1)
        fix = f"Did you mean /{near[0]}?" if near else "See /help"
        raise UsageError(f"there is no command /{name[:40]}", fix=fix)
    await WORDS[name].handler(dialogue, given)
