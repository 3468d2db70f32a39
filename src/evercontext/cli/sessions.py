"""``evercontext sessions``: this directory's past conversations."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import (
    all_option,
    confirm,
    json_option,
    root_option,
    settings_of,
    tell,
)
from evercontext.cli.terminal import Screen, clip, counted, labelled, local_time, one_line, visible
from evercontext.cli.value_completion import completing, sessions
from evercontext.domain.outcome import Outcome
from evercontext.errors import AlreadyExists, UsageError

if TYPE_CHECKING:
    from evercontext.app import EverContext
    from evercontext.memory.sessions import Session

Work = Callable[["EverContext", Screen], Awaitable[Outcome]]


@click.group("sessions")
def command() -> None:
    """Find past conversations: list, search, show.

    Only this directory's unless you say --all, and only yours and the project's (EC_USER).
    """


def _in_house(root: str | None, allow_wide_root: bool | None, work: Work) -> int:
    settings = settings_of(root, allow_wide_root=allow_wide_root)

    async def run() -> Outcome:
        from evercontext.app import EverContext

        async with EverContext.open(settings) as app:
            tell(app)
            return await work(app, Screen(sys.stdout, no_color=settings.no_color))

    return int(run_until_stopped(run()))


@command.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True)
@all_option
@json_option
@root_option
def list_sessions(limit: int, everywhere: bool, as_json: bool, **place: Any) -> int:
    """List the sessions, newest first."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        from evercontext.app.conversations import past_sessions

        sessions = await past_sessions(app, limit, everywhere=everywhere)
        if as_json:
            print(json.dumps([_shape(session) for session in sessions], ensure_ascii=False))
            return Outcome.UNREACHABLE if app.memory.away() else Outcome.DONE
        for session in sessions:
            screen.line(f"{session.id}  {session_row(session, max(20, screen.width - 32))}")
            if everywhere:
                screen.line(f"    {one_line(session.project_path)}", "dim")
        return _report_missing(app, sessions)

    return _in_house(work=work, **place)


def _report_missing(app: EverContext, sessions: list[Session]) -> Outcome:
    """Say why sessions may be missing from a list."""
    if missing := app.memory.missing():
        print(labelled("warning", missing[0]), file=sys.stderr)
        return Outcome.UNREACHABLE
    if not sessions:
        print(translate("this directory has no session yet"), file=sys.stderr)
    return Outcome.DONE


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True)
@all_option
@json_option
@root_option
def search_sessions(
    words: tuple[str, ...], limit: int, everywhere: bool, as_json: bool, **place: Any
) -> int:
    """Find messages that hold all the WORDS; parts of words and Japanese too.

    What you said comes first, then answers, then what tools returned.
    """

    async def work(app: EverContext, screen: Screen) -> Outcome:
        from evercontext.memory.session_search import search

        settings, query = app.settings, " ".join(words)
        project = None if everywhere else settings.root
        hits = await search(app.store, project, query, limit, user_id=settings.user)
        if as_json:
            print(json.dumps([dataclasses.asdict(hit) for hit in hits], ensure_ascii=False))
        for hit in [] if as_json else hits:
            title = one_line(hit.title or translate("(no title)"))
            head = f"{local_time(hit.timestamp)}  {title}  {hit.session_id}"
            screen.line(clip(head, screen.width) if screen.is_terminal else head, "cyan")
            excerpt = f"    {hit.role.ljust(9)} {one_line(hit.excerpt)}"
            screen.line(clip(excerpt, screen.width) if screen.is_terminal else excerpt)
        if not hits:
            print(translate("nothing found"), file=sys.stderr)
        return Outcome.DONE if hits else Outcome.FAILED

    return _in_house(work=work, **place)


@command.command("show")
@click.argument("session", shell_complete=completing(sessions))
@json_option
@root_option
def show_session(session: str, as_json: bool, **place: Any) -> int:
    """Print one session. SESSION is its id, the beginning of it, or `last`."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        text = await _text(app, session, as_json)
        screen.line(text.rstrip("\n") if as_json else visible(text.rstrip("\n")))
        return Outcome.DONE

    return _in_house(work=work, **place)


@command.command("export")
@click.argument("session", shell_complete=completing(sessions))
@click.option("-o", "--output", metavar="FILE", help="A new file; default: stdout.")
@json_option
@root_option
def export_session(session: str, output: str | None, as_json: bool, **place: Any) -> int:
    """Write one session as Markdown or JSON."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        text = await _text(app, session, as_json)
        if output is None:
            sys.stdout.write(text)
            return Outcome.DONE
        _write_new(Path(output), text)
        return Outcome.DONE

    return _in_house(work=work, **place)


@command.command("delete")
@click.argument("session", shell_complete=completing(sessions))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@root_option
def delete_session(session: str, yes: bool, **place: Any) -> int:
    """Delete one session with everything that was said in it."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        from evercontext.app.conversations import find_session
        from evercontext.memory.sessions import SessionRepository

        match = await find_session(app, session)
        if match.ended_at is None:
            raise UsageError(f"{match.id} is open somewhere", fix="Leave that chat first")
        screen.line(
            f"{match.id}  {counted(match.messages, 'message')}  {one_line(match.title or '')}"
        )
        if not yes:
            confirm("Delete it for good?")
        await SessionRepository(app.store).delete(match.id)
        return Outcome.DONE

    return _in_house(work=work, **place)


async def _text(app: EverContext, prefix: str, as_json: bool) -> str:
    from evercontext.app.conversations import find_session
    from evercontext.memory.messages import MessageRepository
    from evercontext.memory.transcript import as_markdown

    session = await find_session(app, prefix)
    messages = await MessageRepository(app.store).conversation(session.id)
    if not as_json:
        return as_markdown(session, messages)
    turns = [dataclasses.asdict(message) for message in messages]
    return json.dumps({**_shape(session), "history": turns}, ensure_ascii=False, indent=2) + "\n"


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise AlreadyExists(f"{path} exists", fix="Name a new file") from None


def _shape(session: Session) -> dict[str, Any]:
    fields = dataclasses.asdict(session)
    fields.pop("metadata")
    return fields


def session_row(session: Session, width: int) -> str:
    """Describe a session on one line."""
    when = local_time(session.last_at or session.started_at)
    about = one_line(session.title or translate("(no title)"))
    return clip(f"{when}  {counted(session.messages, 'message'):>13}  {about}", width)
