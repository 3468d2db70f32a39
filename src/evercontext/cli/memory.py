"""``evercontext memory``: what is remembered of this project, in plain sight."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, counted, labelled, one_line
from evercontext.domain.memory import MemoryType, RetrievalOptions, SourceType
from evercontext.domain.outcome import Outcome
from evercontext.domain.principal import user_name
from evercontext.errors import NotFound, StoreGone, UsageError

if TYPE_CHECKING:
    from evercontext.context.memory_service import MemoryService
    from evercontext.memory.memory_table import Memory

_BATCH = 500
NEAR = 0.05
"""What has less in common with the question is not worth a person's time."""
Work = Callable[["MemoryService", Screen, str | None], Awaitable[Outcome]]


def _readable(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse what a terminal with another encoding sent: nothing could hold it."""
    for text in value if isinstance(value, tuple) else (value or "",):
        if any("\ud800" <= character <= "\udfff" for character in text):
            what = param.human_readable_name
            raise UsageError(f"{what} is not valid UTF-8", fix="Use a UTF-8 terminal or file")
    return value


def _named(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    try:
        return user_name(value) if _readable(ctx, param, value) else value
    except ValueError as problem:
        raise UsageError(str(problem)) from None


user_option = click.option(
    "--user",
    metavar="NAME",
    callback=_named,
    help="Whose memories; '' for the project's. Default: EC_USER, or the project's.",
)


@click.group("memory")
def command() -> None:
    """Add, search, list, forget, export and import memories of this project."""


@command.command("add")
@click.argument("content", callback=_readable)
@click.option("--replaces", metavar="ID", callback=_readable, help="What is no longer true.")
@user_option
@json_option
@root_option
def add(content: str, replaces: str | None, user: str | None, as_json: bool, **place: Any) -> int:
    """Remember CONTENT."""

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        saved = await memory.memories.save_memory(
            content,
            MemoryType.LONGTERM,
            SourceType.DECISION,
            user_id=user,
            project=memory.project,
            supersedes=replaces,
            origin={"door": "cli"},
        )
        print(json.dumps(saved.to_json(), ensure_ascii=False) if as_json else saved.id)
        return _report_queued(1) if saved.queued else Outcome.DONE

    return _with_memory(work, place, user)


@command.command("search")
@click.argument("query", required=False, callback=_readable)
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--stdin", "from_stdin", is_flag=True, help="Read one question per line.")
@user_option
@json_option
@root_option
def search(
    query: str | None, limit: int, from_stdin: bool, user: str | None, as_json: bool, **place: Any
) -> int:
    """Find memories that bear on QUERY, best first, each with why."""
    if (query is None) != from_stdin:
        raise UsageError("say what to look for", fix="Give a QUERY, or --stdin")

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        least = 0.0 if from_stdin else NEAR
        options = RetrievalOptions(limit, user, memory.project, min_similarity=least)
        any_result = False
        for question in _questions(query):
            results = await memory.retrieval.retrieve(question, options)
            any_result = any_result or bool(results)
            _show(question, results, as_json, screen)
        return Outcome.DONE if any_result or from_stdin else Outcome.FAILED

    return _with_memory(work, place, user)


def _questions(query: str | None) -> Iterator[str]:
    if query is not None:
        yield query
        return
    for line in sys.stdin:
        yield line.rstrip("\n")


def _show(question: str, results: Any, as_json: bool, screen: Screen) -> None:
    from evercontext.memory.date_phrases import day_of
    from evercontext.memory.tools import as_json as plain

    if as_json:
        content = {"query": question, "results": [plain(memory) for memory in results]}
        print(json.dumps(content, ensure_ascii=False), flush=True)
        return
    for memory in results:
        mark = f" ({translate('untrusted')})" if memory.untrusted else ""
        who = f"{memory.speaker}: " if memory.speaker else ""
        screen.line(f"{memory.similarity:.2f}  {who}{one_line(memory.content)}{mark}")
        why = ", ".join(f"{name} {value:+.2f}" for name, value in list(memory.reasons.items())[:4])
        screen.line(f"      {memory.id}  {day_of(memory.created_at or '')}  {why}", "dim")
    if not results:
        print(translate("nothing is remembered about that"), file=sys.stderr)


@command.command("list")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--state", type=click.Choice(["active", "archived", "superseded"]), default="active")
@user_option
@json_option
@root_option
def list_memories(limit: int, state: str, user: str | None, as_json: bool, **place: Any) -> int:
    """List memories, newest first."""

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        memories = await memory.memories.list(
            user_id=user, project=memory.project, state=state, limit=limit
        )
        if as_json:
            print(json.dumps([entry.to_json() for entry in memories], indent=2, ensure_ascii=False))
            return Outcome.DONE
        for entry in memories:
            screen.line(_row(entry))
        if not memories:
            print(translate("nothing is remembered of this project"), file=sys.stderr)
        return Outcome.DONE

    return _with_memory(work, place, user)


def _row(memory: Memory) -> str:
    from evercontext.memory.date_phrases import day_of

    marks = [memory.source_type.value, *([translate("untrusted")] if memory.untrusted else [])]
    who = f"{memory.speaker}: " if memory.speaker else ""
    kind = " ".join(marks)
    return f"{memory.id}  {day_of(memory.created_at)}  {kind}  {one_line(who + memory.content)}"


@command.command("forget")
@click.argument("ids", nargs=-1, required=True, callback=_readable)
@user_option
@root_option
def forget(ids: tuple[str, ...], user: str | None, **place: Any) -> int:
    """Wipe the memories IDS for good; the beginning of an id is enough where it is the only one."""

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        whose = {"user_id": user, "project": memory.project}
        for id in ids:
            full_id = await memory.memories.whole_id(id, **whose)
            if full_id is None or not await memory.memories.forget(full_id, **whose):
                raise NotFound(f"there is no memory {id}", fix="See `evercontext memory list`")
            screen.line(translate("forgot {id}", id=one_line(full_id)))
        return Outcome.DONE

    return _with_memory(work, place, user)


@command.command("export")
@user_option
@root_option
def export(user: str | None, **place: Any) -> int:
    """Print every memory as one JSON line, oldest first."""

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        async for line in memory.memories.export(user_id=user, project=memory.project):
            print(json.dumps(line, ensure_ascii=False))
        return Outcome.DONE

    return _with_memory(work, place, user)


@command.command("import")
@click.argument("file", type=click.File("rb"))
@user_option
@root_option
def import_memories(file: BinaryIO, user: str | None, **place: Any) -> int:
    """Take in FILE: JSON lines {id, content, speaker?, created_at?, session?}, - for stdin.

    Lines that `export` made come back as they were; others are turns of a conversation. What has
    an id that is known already is left as it is, and what was forgotten stays so. Times that name
    no zone are taken for this machine's own; lines with a time that cannot be read are named.
    """

    async def work(memory: MemoryService, screen: Screen, user: str | None) -> Outcome:
        from evercontext.memory.jsonl_import import read_memories

        lines = _batches(read_memories(file, memory.project, user))
        taken = read = queued = 0
        for batch in lines:
            try:
                taken += await memory.memories.take_in(batch)
                read += len(batch)
            except StoreGone:
                if not await memory.memories.put_off(batch):
                    raise
                queued += len(batch)
        text = translate("{memories} taken in", memories=_counted(taken))
        if read > taken:
            text += ", " + translate("{count} known already or forgotten", count=read - taken)
        screen.line(text)
        return _report_queued(queued) if queued else Outcome.DONE

    return _with_memory(work, place, user)


def _report_queued(number: int) -> Outcome:
    from evercontext.memory.memory_store import QUEUED

    waiting = "{memories} kept here, not yet stored (see `evercontext doctor`)"
    text = f"{translate_composed(QUEUED)}; {translate(waiting, memories=_counted(number))}"
    print(text, file=sys.stderr)
    return Outcome.UNREACHABLE


def _counted(number: int) -> str:
    return counted(number, "memory", "memories")


def _batches(memories: Iterator[Memory]) -> Iterator[list[Memory]]:
    """Hand over what was read before a bad line, then let its error go on."""
    batch: list[Memory] = []
    try:
        for memory in memories:
            batch.append(memory)
            if len(batch) == _BATCH:
                yield batch
                batch = []
    except UsageError:
        yield batch
        raise
    yield batch


def _with_memory(work: Work, place: dict[str, Any], user: str | None) -> int:
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])

    async def opened() -> Outcome:
        from evercontext.access.acting_user import acting_user
        from evercontext.context.memory_service import MemoryService
        from evercontext.events.redaction import redactor
        from evercontext.settings.directories import check_root, make_home
        from evercontext.storage.opener import open_or_wait

        check_root(settings)
        make_home(settings.home)
        store = await open_or_wait(settings.database, settings.database_url, settings.login)
        try:
            screen = Screen(sys.stdout, no_color=settings.no_color)
            acting = await acting_user(store, settings)
            clean = redactor(settings).masked
            memory = MemoryService.of(store, Path(settings.root), clean)
            for warning in (*store.report.warnings, *await memory.catch_up()):
                print(labelled("warning", warning), file=sys.stderr)
            return await work(memory, screen, (acting if user is None else user) or None)
        finally:
            await store.close()

    return int(run_until_stopped(opened()))
