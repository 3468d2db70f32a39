"""Values that a shell completes: models, sessions, traces and settings, without the network."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from evercontext.errors import EverContextError

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from evercontext.settings import Settings

Values = Callable[["Settings"], Iterator[tuple[str, str]]]
_MOST = 50
_PATIENCE = 1.0


def completing(values: Values) -> Callable[..., list[CompletionItem]]:
    """Make a completion of these values; what cannot be read completes nothing."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from evercontext.cli.options import readable_settings

        settings, _ = readable_settings(_root_of(context))
        try:
            pairs = [pair for pair in values(settings) if pair[0].startswith(incomplete)]
        except (EverContextError, OSError, sqlite3.Error):
            return []
        return [CompletionItem(value, help=about or None) for value, about in pairs[:_MOST]]

    return complete


def _root_of(context: click.Context) -> str | None:
    root: Any = context.params.get("root")
    return root if isinstance(root, str) else None


def models(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the models that could be used from here; a server that is slow is not waited for."""
    import asyncio

    from evercontext.app import available_models

    async def listed() -> list[tuple[str, str]]:
        async with asyncio.timeout(_PATIENCE):
            return [(model.name, model.note) for model in await available_models(settings)]

    try:
        yield from asyncio.run(listed())
    except TimeoutError:
        return


def sessions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield this project's sessions, newest first, from the database file alone."""
    database = settings.home / "memory.db"
    if settings.database_url or not database.is_file():
        return
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=0.2)) as store:
        rows = store.execute(
            "SELECT id, title FROM sessions WHERE project_path = ?"
            " ORDER BY started_at DESC LIMIT ?",
            (str(settings.root.resolve()), _MOST),
        ).fetchall()
    yield "last", ""
    for session_id, title in rows:
        yield str(session_id), str(title or "")


def traces(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield this project's newest tasks by the beginning of their ids."""
    from evercontext.cli.trace_lookup import newest

    for summary in newest(settings.traces, 20, settings.root):
        yield summary.trace_id[:8], summary.text


def setting_names(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings that can be set."""
    from evercontext.settings import rows

    for row in rows():
        yield row.name, str(row.metadata.get("help", ""))
