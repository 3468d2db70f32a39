"""``evercontext index``: bring the code index up to date, once or for as long as you work."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import counted, labelled
from evercontext.errors import EverContextError, StoreBusy
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.index.code_search import CodeIndex
    from evercontext.index.indexer import IndexReport, Progress

_SHOWN_REASONS = 10


@click.command("index")
@click.option("--watch", is_flag=True, help="Stay and follow every change, until Ctrl-C.")
@click.option("--rebuild", is_flag=True, help="Forget the old index first.")
@click.option("-v", "--verbose", is_flag=True, help="Name the files that were left out, and why.")
@json_option
@root_option
def command(
    watch: bool,
    rebuild: bool,
    verbose: bool,
    as_json: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> int:
    """Bring the code index up to date; --watch keeps it so.

    Only changed files are read. What git ignores, secrets, binaries and large files stay out;
    .evercontextignore takes out more.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    return run_until_stopped(_index(settings, watch, rebuild, verbose, as_json))


async def _index(
    settings: Settings, watch: bool, rebuild: bool, verbose: bool, as_json: bool
) -> int:
    async with opened_index(settings) as index:
        try:
            if rebuild:
                async with index.indexer.lease.hold():
                    await index.table.forget()
            report = await index.update(progress=_progress(as_json))
        except StoreBusy as busy:
            # The other one does the same work: there is nothing left to do here.
            text = translate("{reason}: left to it", reason=translate_composed(busy.message))
            print(text, file=sys.stderr)
            return 0
        await _tell(index, report, verbose, as_json)
        if watch:
            await _watch(settings, index, as_json)
    return 0


async def _watch(settings: Settings, index: CodeIndex, as_json: bool) -> None:
    from evercontext.index.queue_worker import watch

    def tell(report: IndexReport) -> None:
        print(_line(report, as_json), flush=True)
        _tell_trouble(report)

    def warn(problem: EverContextError) -> None:
        print(labelled("warning", str(problem)), file=sys.stderr, flush=True)

    print(translate("watching, Ctrl-C ends"), file=sys.stderr, flush=True)
    await watch(index, await index_folder(settings), asyncio.Event(), tell, warn)


async def _tell(index: CodeIndex, report: IndexReport, verbose: bool, as_json: bool) -> None:
    rows = await index.table.rows()
    files = sum(row.content is not None for row in rows.values())
    print(_line(report, as_json, files), flush=True)
    _tell_trouble(report)
    if verbose and not as_json:
        for path, why in sorted(report.skipped.items())[:_SHOWN_REASONS]:
            reason = f"{path}: {translate_composed(why)}"
            print("  " + translate("left out: {reason}", reason=reason))


def _tell_trouble(report: IndexReport) -> None:
    if report.trouble:
        text = labelled("warning", f"{report.by}: {report.trouble}")
        print(text, file=sys.stderr, flush=True)


def _line(report: IndexReport, as_json: bool, files: int | None = None) -> str:
    from evercontext.index import tools

    if as_json:
        return json.dumps(_data(report, files), ensure_ascii=False)
    counts = tools.counted(report)
    # For people a rename is one thing, not one that came and one that went.
    counts["added"] -= report.renamed
    counts["deleted"] -= report.renamed
    changed = {name: n for name, n in counts.items() if n > 0 and name != "embedded"}
    changes = ", ".join(translate(f"{{count}} {name}", count=n) for name, n in changed.items())
    total_text = ""
    if files is not None:
        total_text = translate("{files} indexed", files=counted(files, "file")) + "; "
    left_out = translate("{count} left out", count=len(report.skipped)) if report.skipped else ""
    spent = f"; {_spent(report)}" if report.requested else ""
    parts = ", ".join(filter(None, (changes or translate("nothing changed"), left_out)))
    return f"{total_text}{parts}{spent} ({report.seconds:.1f} s)"


def _data(report: IndexReport, files: int | None) -> dict[str, Any]:
    from evercontext.index import tools

    data: dict[str, Any] = {} if files is None else {"files": files}
    data |= tools.counted(report)
    if report.skipped:
        data["skipped"] = report.skipped
    if report.by:
        embedder = {"name": report.by, "chunks": report.requested, "tokens": report.tokens}
        data["embedder"] = {**embedder, "cost_usd": report.cost, "trouble": report.trouble}
    return {**data, "seconds": round(report.seconds, 3)}


def _spent(report: IndexReport) -> str:
    """What an embedder was given to do, and what that cost."""
    tokens = f", {counted(report.tokens, 'token')}" if report.tokens else ""
    cost = f", ${report.cost:.4f}" if report.cost is not None else ""
    chunks = counted(report.requested, "chunk")
    return translate("{chunks} embedded by {name}", chunks=chunks, name=report.by) + tokens + cost


def _progress(as_json: bool) -> Progress | None:
    """A bar for people, lines for programs; both beside the result, on the error stream."""

    def tell(done: int, total: int) -> None:
        if total:
            print(json.dumps({"done": done, "total": total}), file=sys.stderr, flush=True)

    if as_json:
        return tell
    return show_bar if sys.stderr.isatty() else None


async def index_folder(settings: Settings, *, tell: bool = False) -> Path:
    """Return the folder of the project's index; ``tell`` warns if it is not the usual one."""
    from evercontext.index.location import index_folder as folder_of

    return await folder_of(settings.root, settings.home, tell=_print_warning if tell else None)


def _print_warning(text: str) -> None:
    print(labelled("warning", text), file=sys.stderr)


def show_bar(done: int, total: int) -> None:
    """Draw how far an update has come, over what was drawn before."""
    if not total:
        return
    width = 30 * done // max(total, 1)
    end = "\n" if done >= total else ""
    print(f"\r[{'#' * width:30s}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def show_progress(done: int, total: int) -> None:
    """Show a person how far an update has come that they wait for."""
    if done == 0:
        print(translate("indexing first …"), file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        show_bar(done, total)


def opened_index(settings: Settings) -> AbstractAsyncContextManager[CodeIndex]:
    """Open the code index of the settings' root, and print its warnings."""
    from evercontext.app.index import open_index

    return open_index(settings, _print_warning)
