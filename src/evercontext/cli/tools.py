"""``evercontext tools``: which tool does this, and what does it answer?"""

from __future__ import annotations

import difflib
import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of, tell
from evercontext.cli.terminal import Screen, clip, one_line, visible
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door
from evercontext.errors import EverContextError, UnknownTool, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.app import EverContext
    from evercontext.catalog.tool_entry import CatalogEntry
    from evercontext.catalog.tool_search import ToolMatch, ToolSearch

LARGEST_CATALOG = 64 * 1024 * 1024
"""Bytes of a catalog in a file."""
PATIENCE = 10.0
"""Seconds that servers get to start, where a person waits for all of them."""


@click.group("tools")
def command() -> None:
    """Find tools by what they do, and call them."""


@command.command("discover")
@click.argument("query", required=False)
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option("--strategy", type=click.Choice(["hybrid", "bm25", "null"]), default="hybrid")
@click.option("--catalog", metavar="FILE", help="Look in a list of tools in a JSON file.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read one question per line.")
@json_option
@root_option
def discover(
    query: str | None,
    limit: int,
    strategy: str,
    catalog: str | None,
    from_stdin: bool,
    as_json: bool,
    **place: Any,
) -> int:
    """Find the tools that do QUERY, best first, each with why.

    A catalog FILE is a list of {toolKey, serverName, toolName, description, params or inputSchema}.
    """
    from evercontext.catalog.tool_search import Strategy, ToolSearch

    if (query is None) != from_stdin:
        raise UsageError("say what to look for", fix="Give a QUERY, or --stdin")
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    entries = read_catalog(Path(catalog)) if catalog else run_until_stopped(_gather(settings))
    tools = ToolSearch(entries, Strategy(strategy))
    return int(
        _answer(tools, query, limit, as_json, Screen(sys.stdout, no_color=settings.no_color))
    )


def _answer(
    tools: ToolSearch, query: str | None, limit: int, as_json: bool, screen: Screen
) -> Outcome:
    any_result = False
    for question in _questions(query):
        results = tools.search([question], limit)
        any_result = any_result or bool(results)
        _show(question, results, as_json, screen)
    return Outcome.DONE if any_result or query is None else Outcome.FAILED


def _questions(query: str | None) -> Iterator[str]:
    if query is not None:
        yield query
        return
    for line in sys.stdin:
        yield line.rstrip("\n")


async def _gather(settings: Settings) -> Sequence[CatalogEntry]:
    from evercontext.app import EverContext

    async with EverContext.open(settings) as app:
        tell(app)
        entries = await app.catalog.entries(_person(app), PATIENCE)
        for name, problem in app.catalog.servers.unheard():
            reason = problem if problem.startswith(f"{name} ") else f"{name}: {problem}"
            text = translate("left out: {reason}", reason=translate_composed(one_line(reason)))
            print(text, file=sys.stderr)
        return entries


def _person(app: EverContext) -> Caller:
    return Caller(str(uuid.uuid4()), Door.RUN, principal=app.principal, road=app.toolbox)


@command.command("export")
@root_option
def export(**place: Any) -> int:
    """Print every tool as JSON, in the form that --catalog reads."""
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    entries = run_until_stopped(_gather(settings))
    print(json.dumps([entry.to_json() for entry in entries], indent=2, ensure_ascii=False))
    return 0


@command.command("call")
@click.argument("key", metavar="KEY")
@click.argument("arguments", metavar="[JSON]", default="{}")
@json_option
@root_option
def call(key: str, arguments: str, as_json: bool, **place: Any) -> int:
    """Call the tool KEY (server:tool) with the arguments in JSON, and print its answer.

    Texts are printed as they are, everything else as JSON; with --json the whole answer.
    Credentials that the server was given are masked.
    """
    try:
        values = json.loads(arguments)
    except ValueError:
        raise UsageError("the arguments are no JSON", fix="Write them as one object") from None
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    return int(run_until_stopped(_call(settings, key, values, as_json)))


async def _call(settings: Settings, key: str, values: Any, as_json: bool) -> Outcome:
    from evercontext.app import EverContext
    from evercontext.events.redaction import cleaned

    async with EverContext.open(settings) as app:
        tell(app)
        box = app.toolbox.along_with(app.catalog.tools())
        result = await box.call("tool_execute", {"toolKey": key, "arguments": values}, _person(app))
        clean = app.catalog.servers.cleaner(key.partition(":")[0])
        if result.error is not None:
            result.error.message = clean(result.error.message)
            if isinstance(result.error, UnknownTool):
                result.error.fix = await _fix_for_unknown_key(app, key)
            raise result.error
        answer = cleaned(result.data["result"], clean)
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
        return Outcome.DONE
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for text in _readable(answer):
        screen.line(visible(text))
    return Outcome.DONE


async def _fix_for_unknown_key(app: EverContext, key: str) -> str:
    """What somebody at a terminal does about a key that is none."""
    known = [entry.key for entry in await app.catalog.entries(_person(app), PATIENCE)]
    near = difflib.get_close_matches(key, known, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return 'See: evercontext tools discover "WHAT IT DOES"'


def _readable(answer: Any) -> Iterator[str]:
    """An answer as people read it: texts as texts, what is no text as JSON."""
    content = answer.get("content") if isinstance(answer, dict) else None
    for part in content if isinstance(content, list) and content else [answer]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text
        else:
            yield json.dumps(part, indent=2, ensure_ascii=False)


def read_catalog(path: Path) -> list[CatalogEntry]:
    """Read a list of tools from a JSON file."""
    from evercontext.catalog.tool_entry import read_entry

    try:
        if path.stat().st_size > LARGEST_CATALOG:
            raise UsageError(f"{path} is larger than {LARGEST_CATALOG} bytes")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise UsageError(f"{path} is no list of tools: {one_line(str(problem))}") from None
    if not isinstance(content, list):
        raise UsageError(f"{path} is no list of tools")
    try:
        return [read_entry(value) for value in content]
    except EverContextError as problem:
        raise UsageError(f"{path}: {problem}") from None


def _show(question: str, results: Sequence[ToolMatch], as_json: bool, screen: Screen) -> None:
    if as_json:
        content = {"query": question, "results": [as_plain(match) for match in results]}
        print(json.dumps(content, ensure_ascii=False), flush=True)
        return
    for match in results:
        screen.line(f"{match.relevance:.2f}  {one_line(match.entry.key)}", "bold")
        screen.line(f"      {clip(one_line(match.entry.description), screen.width - 8)}")
        screen.line(f"      {one_line(match.explanation)}", "dim")
    if not results:
        print(translate("no tool does that"), file=sys.stderr)


def as_plain(match: ToolMatch) -> dict[str, Any]:
    """A found tool as JSON."""
    explained = {"relevance": match.relevance, "explanation": match.explanation}
    return {**match.entry.to_json(), **explained}
