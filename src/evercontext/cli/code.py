"""``evercontext code``: questions about the structure of the project's code."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.index import opened_index, show_progress
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import Screen
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.index.code_search import CodeIndex

_PATIENCE = 60.0
"""Seconds that a person waits for the index."""
_LIMIT = 200
Answer = tuple[str, dict[str, Any], bool]
"""Text, JSON, and whether anything was found."""


@click.group("code")
def command() -> None:
    """Ask who defines, calls, imports or implements a name; a map.

    For Python, TypeScript, JavaScript, Go, Rust and Java. A NAME is Cart, or Cart.add for a member.
    Each line says how sure it is: "same file", "imported", "type" (the object's type is known),
    "supertype" (through a base class or interface), or "name" (only the name fits).

    \b
    evercontext code callers Cart.add
    evercontext code importers shop/cart.py
    evercontext code map --budget 1000
    """


def _run(
    ask: Callable[[CodeIndex], Awaitable[Answer]],
    as_json: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> int:
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    if settings.rag_url:
        raise UsageError("code is not offered by EC_RAG_URL", fix="Unset it")

    async def work() -> int:
        async with opened_index(settings) as index:
            text, data, has_results = await ask(index)
        if as_json:
            print(json.dumps(data, ensure_ascii=False, indent=2))
        else:
            screen = Screen(sys.stdout, no_color=settings.no_color)
            for line in text.split("\n"):
                screen.line(line)
        return 0 if has_results else 1

    return run_until_stopped(work())


def _ask(
    question: str, name: str, path: str | None, limit: int, as_json: bool, **place: Any
) -> int:
    async def ask(index: CodeIndex) -> Answer:
        from evercontext.index.structure.service import ask_structure
        from evercontext.index.structure.text import answer_text

        answer = await ask_structure(
            index, question, name, path, limit=limit, patience=_PATIENCE, progress=show_progress
        )
        return answer_text(answer), answer.as_data(), answer.total > 0

    return _run(ask, as_json, **place)


def _name_command(question: str, text: str) -> None:
    """Add the command of one question about a name."""

    @command.command(question, help=text)
    @click.argument("name")
    @click.option(
        "--path", metavar="PATH", help="File or folder of the definition, if several have the name."
    )
    @click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=_LIMIT, show_default=True)
    @json_option
    @root_option
    def ask(
        name: str,
        path: str | None,
        limit: int,
        as_json: bool,
        root: str | None,
        allow_wide_root: bool | None,
    ) -> int:
        if not name.strip():
            raise UsageError("the name is empty", fix="Name a symbol such as Cart or Cart.add")
        place = {"root": root, "allow_wide_root": allow_wide_root}
        return _ask(question, name, path, limit, as_json, **place)


_name_command("definition", "Show where NAME is defined, with its signature.")
_name_command("references", "Show every line that refers to NAME, the surest first.")
_name_command("callers", "Show who calls NAME; for a class, who makes one.")
_name_command("callees", "Show what the function NAME calls.")
_name_command("importers", "Show who imports NAME: a symbol, a file, or a module like shop.cart.")
_name_command(
    "implementations", "Show the subclasses or implementations of NAME, or overrides of a method."
)


@command.command("outline")
@click.argument("path")
@json_option
@root_option
def outline(path: str, as_json: bool, root: str | None, allow_wide_root: bool | None) -> int:
    """List what the file PATH defines, with lines and signatures."""

    async def ask(index: CodeIndex) -> Answer:
        from evercontext.index.structure.questions import symbol_data
        from evercontext.index.structure.service import outline_file
        from evercontext.index.structure.text import outline_text

        symbols = await outline_file(index, path, patience=_PATIENCE, progress=show_progress)
        data = {"path": path, "symbols": [symbol_data(symbol) for symbol in symbols]}
        return outline_text(symbols), data, bool(symbols)

    return _run(ask, as_json, root, allow_wide_root)


@command.command("map")
@click.option(
    "--budget",
    type=click.IntRange(50, 100_000),
    metavar="TOKENS",
    default=2_000,
    show_default=True,
    help="How long the map may be.",
)
@click.option(
    "--path-prefix", metavar="PREFIX", default="", help="Only paths that begin with this."
)
@json_option
@root_option
def draw(
    budget: int, path_prefix: str, as_json: bool, root: str | None, allow_wide_root: bool | None
) -> int:
    """Show the most used definitions, by file, within a number of tokens."""

    async def ask(index: CodeIndex) -> Answer:
        from dataclasses import asdict

        from evercontext.app.index import count_tokens
        from evercontext.index.structure.service import map_repository

        drawn = await map_repository(
            index, count_tokens, budget, path_prefix, patience=_PATIENCE, progress=show_progress
        )
        data = asdict(drawn)
        del data["lines"]
        text = "\n".join(part for part in (drawn.text, drawn.note) if part)
        return text or "nothing is defined here", data, bool(drawn.symbols)

    return _run(ask, as_json, root, allow_wide_root)
