"""Sessions in the chat: take one up, copy it, go back in it, write it down."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from evercontext.cli.terminal import clip, counted, local_time, one_line, visible
from evercontext.domain.tool import Door, Mode
from evercontext.errors import ModeRefused, StoreGone, UsageError
from evercontext.tools.approval_gate import Gate

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.cli.chat.dialogue import Dialogue
    from evercontext.memory.sessions import Session

LISTED = 5
_SHOWN = 4


async def offer(dialogue: Dialogue, limit: int = LISTED) -> bool:
    """List this directory's sessions with numbers; ``False`` if there are none."""
    from evercontext.app.conversations import past_sessions

    found = [s for s in await past_sessions(dialogue.app) if s.id != dialogue.talk.session.id]
    dialogue.offered = [session.id for session in found[:limit]]
    for number, session in enumerate(found[:limit], start=1):
        dialogue.screen.line(f"  {number}  {row(session, dialogue.screen.width - 6)}")
    return bool(found)


def row(session: Session, width: int) -> str:
    """One session on one line."""
    when = local_time(session.last_at or session.started_at)
    about = one_line(session.title or "(no title)")
    return clip(f"{when}  {counted(session.messages, 'message'):>13}  {about}", width)


async def resume(dialogue: Dialogue, given: str) -> None:
    """List the sessions, or take one up by its number or the beginning of its id."""
    if not given:
        offered, missing = await offer(dialogue, limit=20), dialogue.app.memory.missing()
        for line in missing:
            dialogue.say(line, "yellow")
        if offered:
            dialogue.say("Type a number to take one up.", "dim")
        elif not missing:
            dialogue.say("this directory has no other session", "dim")
        return
    wanted = dialogue.choice(int(given)) if given.isdigit() else None
    await take_up(dialogue, wanted or given)


async def take_up(dialogue: Dialogue, wanted: str) -> None:
    """Leave the present session and go on with another one."""
    from evercontext.app.conversations import find_session

    kept = await find_session(dialogue.app, wanted)
    await _change_to(dialogue, resume=kept.id)
    dialogue.say(f"back in: {kept.title or kept.id}", "bold")
    show_end(dialogue)


async def begin(dialogue: Dialogue, given: str) -> None:
    """Leave the present session and start a new one."""
    await _change_to(dialogue)
    dialogue.say("a new session; the old one can be taken up with /resume", "bold")


async def fork(dialogue: Dialogue, given: str) -> None:
    """Go on in a copy."""
    if not dialogue.talk.history:
        raise UsageError("there is nothing to copy yet", fix="Say something first")
    await _change_to(dialogue, resume=dialogue.talk.session.id, copy=True)
    dialogue.say(f"a copy: {dialogue.talk.session.id}", "bold")


async def _change_to(dialogue: Dialogue, resume: str | None = None, copy: bool = False) -> None:
    from evercontext.app.conversations import open_conversation

    old = dialogue.talk
    # What the user named stays in force, also for a session that is taken up before anything was
    # said; what was only the default is not chosen by /new.
    named = None if resume and old.history else await _named(old)
    new = await open_conversation(
        dialogue.app,
        resume=resume,
        fork=copy,
        model_name=named,
        otherwise=old.model.info.name,
        mode=old.mode,
    )
    new.verify, new.repair = old.verify, old.repair
    await leave(dialogue)
    dialogue.talk = new
    dialogue.permissions.session.clear()


async def _named(talk: Conversation) -> str | None:
    """The model of a conversation, if somebody named it."""
    with suppress(StoreGone):
        session = await talk.sessions.get_by_id(talk.session.id)
        name = talk.model.info.name
        return name if session and session.metadata.get("model") == name else None
    return None


async def leave(dialogue: Dialogue) -> None:
    """End the session; one in which nothing was said leaves no trace."""
    await dialogue.talk.end()
    # Where the server cannot be asked how much was said, the session stays.
    with suppress(StoreGone):
        _, count = await dialogue.talk.messages.list(session_id=dialogue.talk.session.id, limit=1)
        if not count:
            await dialogue.talk.sessions.delete(dialogue.talk.session.id)


def show_end(dialogue: Dialogue) -> None:
    """The last few things that were said."""
    from evercontext.cli.chat.markdown import rendered

    said = [m for m in dialogue.talk.history if m.role in ("user", "assistant") and m.content]
    for message in said[-_SHOWN:]:
        dialogue.screen.line()
        if message.role == "user":
            dialogue.screen.line(f"> {visible(message.content)}", "bold")
        else:
            dialogue.screen.line(rendered(message.content, dialogue.screen))


async def undo(dialogue: Dialogue, given: str) -> None:
    """Take back the files of the last turn."""
    await rewind(dialogue, given or "1 code")


async def rewind(dialogue: Dialogue, given: str) -> None:
    """Go back to before a turn: its files, what was said, or both."""
    from evercontext.agent.rewinding import turns

    found = await turns(dialogue.talk)
    words = given.split()
    if not words:
        for number, turn in enumerate(found[:10], start=1):
            line = f"  {number}  {turn.at}  {one_line(turn.text.partition(chr(10))[0])}"
            dialogue.screen.line(clip(line, dialogue.screen.width))
        dialogue.say("Go back to before one: /rewind N code, chat or both", "dim")
        return
    what = words[1] if len(words) > 1 else "both"
    number = int(words[0]) if words[0].isdigit() else 0
    if not 1 <= number <= len(found) or what not in ("code", "chat", "both"):
        raise UsageError(f"cannot go back to {given[:40]!r}", fix="See /rewind for the list")
    if what != "chat":
        await _restore(dialogue, [turn.trace_id for turn in found[:number]])
    if what != "code":
        from evercontext.agent.rewinding import forget_from

        gone = await forget_from(dialogue.talk, found[number - 1])
        dialogue.say(f"{counted(gone, 'message')} taken back", "bold")


async def _restore(dialogue: Dialogue, traces: list[str]) -> None:
    from evercontext.agent.undo import journal_of, undo_task
    from evercontext.workspace.checkpoints import list_traces

    if dialogue.talk.mode is Mode.PLAN:
        raise ModeRefused("plan mode changes nothing", fix="Switch to agent mode first")
    journal = journal_of(dialogue.app)
    standing = [t for t in await list_traces(journal) if t.stands]
    wanted = [trace.trace_id for trace in standing if trace.trace_id in traces]
    if not wanted:
        dialogue.say("no file to restore", "dim")
    for trace_id in wanted:
        done = await undo_task(dialogue.app, trace_id, door=Door.CHAT)
        for word, paths in (("restored", done.restored), ("removed", done.removed)):
            for path in paths:
                dialogue.say(f"  {word}  {path}", "green")
        for place in done.moved:
            dialogue.say(f"  moved to  {place} (move it back by hand)", "yellow")
        for kept in done.kept:
            dialogue.say(f"  kept  {kept.path} ({kept.reason})", "yellow")
        if done.memories:
            told = counted(done.memories, "memory", "memories")
            dialogue.say(f"  with it  {told} of this work", "green")


async def export(dialogue: Dialogue, given: str) -> None:
    """Write the session as Markdown into the project."""
    from evercontext.agent.task import new_trace_id
    from evercontext.memory.transcript import as_markdown

    talk = dialogue.talk
    path = given or f"session-{talk.session.id}.md"
    text = as_markdown(talk.session, await talk.messages.conversation(talk.session.id))
    box = talk.toolbox.behind(Gate())
    call = {"path": path, "content": text, "mode": "create"}
    result = await box.call("write_file", call, talk.caller(new_trace_id()))
    if result.error:
        raise result.error
