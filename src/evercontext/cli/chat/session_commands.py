"""Sessions in the chat: take one up, copy it, go back in it, write it down."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import clip, counted, one_line, visible
from evercontext.domain.tool import Door, Mode
from evercontext.errors import AlreadyExists, IoFailed, ModeRefused, StoreGone, UsageError
from evercontext.tools.approval_gate import Gate

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.cli.chat.chat_session import ChatSession
    from evercontext.workspace.checkpoints import Undone

LISTED = 5
_SHOWN = 4


async def offer(chat: ChatSession, limit: int = LISTED) -> bool:
    """List this directory's sessions with numbers; ``False`` if there are none."""
    from evercontext.app.conversations import past_sessions
    from evercontext.cli.sessions import session_row

    sessions = [s for s in await past_sessions(chat.app) if s.id != chat.talk.session.id]
    chat.offered = [session.id for session in sessions[:limit]]
    for number, session in enumerate(sessions[:limit], start=1):
        chat.screen.line(f"  {number}  {session_row(session, chat.screen.width - 6)}")
    return bool(sessions)


async def resume(chat: ChatSession, argument: str) -> None:
    """List the sessions, or take one up by its number or the beginning of its id."""
    if not argument:
        offered, missing = await offer(chat, limit=20), chat.app.memory.missing()
        for line in missing:
            chat.say(translate_composed(line), "yellow")
        if offered:
            chat.say(translate("Type a number to take one up."), "dim")
        elif not missing:
            chat.say(translate("this directory has no other session"), "dim")
        return
    session_id = chat.choice(int(argument)) if argument.isdigit() else None
    await take_up(chat, session_id or argument)


async def take_up(chat: ChatSession, prefix: str) -> None:
    """Leave the present session and go on with another one."""
    from evercontext.app.conversations import find_session

    session = await find_session(chat.app, prefix)
    await _change_to(chat, resume=session.id)
    chat.say(translate("back in: {session}", session=session.title or session.id), "bold")
    show_end(chat)


async def begin(chat: ChatSession, argument: str) -> None:
    """Leave the present session and start a new one."""
    await _change_to(chat)
    chat.say(translate("a new session; the old one can be taken up with /resume"), "bold")


async def fork(chat: ChatSession, argument: str) -> None:
    """Go on in a copy."""
    if not chat.talk.history:
        raise UsageError("there is nothing to copy yet", fix="Say something first")
    await _change_to(chat, resume=chat.talk.session.id, copy=True)
    chat.say(translate("a copy: {session}", session=chat.talk.session.id), "bold")


async def _change_to(chat: ChatSession, resume: str | None = None, copy: bool = False) -> None:
    from evercontext.app.conversations import open_conversation

    old = chat.talk
    # What the user named stays in force, also for a session that is taken up before anything was
    # said; what was only the default is not chosen by /new.
    named = None if resume and old.history else await _named(old)
    new = await open_conversation(
        chat.app,
        resume=resume,
        fork=copy,
        model_name=named,
        otherwise=old.model.info.name,
        mode=old.mode,
    )
    new.verify, new.repair = old.verify, old.repair
    await leave(chat)
    chat.talk = new
    chat.permissions.session.clear()


async def _named(talk: Conversation) -> str | None:
    """The model of a conversation, if somebody named it."""
    with suppress(StoreGone):
        session = await talk.sessions.get_by_id(talk.session.id)
        name = talk.model.info.name
        return name if session and session.metadata.get("model") == name else None
    return None


async def leave(chat: ChatSession) -> None:
    """End the session; one in which nothing was said leaves no trace."""
    await chat.talk.end()
    # Where the server cannot be asked how much was said, the session stays.
    with suppress(StoreGone):
        _, count = await chat.talk.messages.list(session_id=chat.talk.session.id, limit=1)
        if not count:
            await chat.talk.sessions.delete(chat.talk.session.id)


def show_end(chat: ChatSession) -> None:
    """The last few things that were said."""
    from evercontext.cli.markdown import rendered

    messages = [m for m in chat.talk.history if m.role in ("user", "assistant") and m.content]
    for message in messages[-_SHOWN:]:
        chat.screen.line()
        if message.role == "user":
            chat.screen.line(f"> {visible(message.content)}", "bold")
        else:
            chat.screen.line(rendered(message.content, chat.screen))


async def undo(chat: ChatSession, argument: str) -> None:
    """Take back the files of the last turn; ``all``: and what else the background changed."""
    if argument != "all":
        return await rewind(chat, argument or "1 code")
    from evercontext.agent.rewind import turns

    past = [turn.trace_id for turn in await turns(chat.talk)]
    return await _restore(chat, past[:1], past, everything=True)


async def rewind(chat: ChatSession, argument: str) -> None:
    """Go back to before a turn: its files, what was said, or both."""
    from evercontext.agent.rewind import turns

    past = await turns(chat.talk)
    words = argument.split()
    if not words:
        for number, turn in enumerate(past[:10], start=1):
            line = f"  {number}  {turn.at}  {one_line(turn.text.partition(chr(10))[0])}"
            chat.screen.line(clip(line, chat.screen.width))
        chat.say(translate("Go back to before one: /rewind N code, chat or both"), "dim")
        return
    what = words[1] if len(words) > 1 else "both"
    number = int(words[0]) if words[0].isdigit() else 0
    if not 1 <= number <= len(past) or what not in ("code", "chat", "both"):
        raise UsageError(f"cannot go back to {argument[:40]!r}", fix="See /rewind for the list")
    if what != "chat":
        traces = [turn.trace_id for turn in past]
        await _restore(chat, traces[:number], traces)
    if what != "code":
        from evercontext.agent.rewind import forget_from

        gone = await forget_from(chat.talk, past[number - 1])
        messages = counted(gone, "message")
        chat.say(translate("{messages} taken back", messages=messages), "bold")


async def _restore(
    chat: ChatSession, traces: list[str], session: list[str], *, everything: bool = False
) -> None:
    """Take back some turns; name what else changed in the session, or take that back, too."""
    from evercontext.agent.task_undo import journal_of, undo_task
    from evercontext.workspace.checkpoints import doubtful_changes, list_traces

    if chat.talk.mode is Mode.PLAN:
        raise ModeRefused("plan mode changes nothing", fix="Switch to agent mode first")
    journal = journal_of(chat.app)
    await account_background(chat)
    standing = [t for t in await list_traces(journal) if t.stands]
    chosen = [trace.trace_id for trace in standing if trace.trace_id in traces]
    doubtful = await doubtful_changes(journal, session)
    others = {change.path: change for change in doubtful if change.trace_id not in chosen}
    if not chosen and not (everything and others):
        chat.say(translate("no file to restore"), "dim")
    for trace_id in dict.fromkeys(c.trace_id for c in others.values()) if everything else ():
        done = await undo_task(chat.app, trace_id, only_doubtful=True, door=Door.CHAT)
        _tell_undone(chat, done)
    for trace_id in chosen:
        done = await undo_task(chat.app, trace_id, everything=everything, door=Door.CHAT)
        _tell_undone(chat, done)
    for path, change in others.items() if not everything else ():
        _tell_kept(chat, path, change.reason)


async def account_background(chat: ChatSession) -> None:
    """Account for what commands in the background changed since the last turn."""
    if chat.app.background:
        await chat.app.background.account_between(chat.talk.session.id)


def _tell_undone(chat: ChatSession, done: Undone) -> None:
    for word, paths in (("restored", done.restored), ("removed", done.removed)):
        for path in paths:
            chat.say(f"  {translate(word)}  {path}", "green")
    for place in done.moved:
        text = translate("moved to  {place} (move it back by hand)", place=place)
        chat.say(f"  {text}", "yellow")
    for unrestored in done.skipped:
        _tell_kept(chat, unrestored.path, unrestored.reason)
    if done.memories:
        memories = counted(done.memories, "memory", "memories")
        text = translate("with it  {memories} of this work", memories=memories)
        chat.say(f"  {text}", "green")


def _tell_kept(chat: ChatSession, path: str, reason: str) -> None:
    # What is an option of the command line is a word here.
    shown = translate_composed(reason).replace("--all", "/undo all")
    chat.say("  " + translate("kept {what}", what=f"{path} ({shown})"), "yellow")


async def export(chat: ChatSession, argument: str) -> None:
    """Write the session as Markdown, into the project or wherever a path says."""
    from evercontext.agent.task import new_trace_id
    from evercontext.memory.transcript import as_markdown

    talk = chat.talk
    path = argument or f"session-{talk.session.id}.md"
    text = as_markdown(talk.session, await talk.messages.conversation(talk.session.id))
    if path.startswith(("/", "~")) or ".." in Path(path).parts:
        # Outside the project it is the user's own act, as `sessions export` is.
        return await asyncio.to_thread(_write_new, chat, Path(path), text)
    box = talk.toolbox.behind(Gate())
    call = {"path": path, "content": text, "mode": "create"}
    result = await box.call("write_file", call, talk.caller(new_trace_id()))
    if result.error:
        raise result.error
    return None


def _write_new(chat: ChatSession, place: Path, text: str) -> None:
    place = place.expanduser()
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise AlreadyExists(f"{place} is there already", fix="Name another file") from None
    except OSError as problem:
        raise IoFailed(f"{place}: {problem.strerror}", fix="Name another file") from None
    chat.say(translate("written: {place}", place=place), "bold")
