"""``evercontext git-hooks``: let git tell the index about commits."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from evercontext.cli.index import index_folder, opened_index
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import root_option, settings_of
from evercontext.cli.terminal import counted, one_line
from evercontext.settings import Settings


@click.group("git-hooks")
def command() -> None:
    """Let git tell the index about commits."""


@command.command("install")
@root_option
def install(root: str | None, allow_wide_root: bool | None) -> None:
    """Write a few lines into the repository's hooks, beside what is there."""
    from evercontext.index import git_hook

    settings = settings_of(root, allow_wide_root=allow_wide_root)
    run_until_stopped(index_folder(settings, tell=True))
    done = run_until_stopped(git_hook.install(settings.root.resolve()))
    text = translate("installed in {folder}: {hooks}", **_names(done.folder, done.hooks))
    print(text)
    if done.elsewhere:
        shared = translate(
            "core.hooksPath names that folder: other repositories may run these hooks too; "
            "where there is no .evercontext folder they do nothing"
        )
        print(shared, file=sys.stderr)


@command.command("uninstall")
@root_option
def uninstall(root: str | None, allow_wide_root: bool | None) -> None:
    """Take these lines out again."""
    from evercontext.index import git_hook

    settings = settings_of(root, allow_wide_root=allow_wide_root)
    done = run_until_stopped(git_hook.uninstall(settings.root.resolve()))
    names = _names(done.folder, done.hooks)
    text = translate("removed from {folder}: {hooks}", **names)
    print(text if done.hooks else translate("{folder}: nothing was there", **names))


def _names(folder: Path, hooks: Sequence[str]) -> dict[str, str]:
    return {"folder": one_line(str(folder)), "hooks": ", ".join(hooks)}


@command.command("status")
@root_option
def status(root: str | None, allow_wide_root: bool | None) -> int:
    """Say which hooks are installed; exit code 1 if none is."""
    from evercontext.index import git_hook

    settings = settings_of(root, allow_wide_root=allow_wide_root)
    held = run_until_stopped(git_hook.status(settings.root.resolve()))
    print(f"{one_line(str(held.folder))}: {', '.join(held.hooks) or translate('not installed')}")
    return 0 if held.hooks else 1


@command.command("drain")
@root_option
def drain(root: str | None, allow_wide_root: bool | None) -> int:
    """Index what hooks have announced; hooks call this in the background."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    with suppress(OSError):
        # The user is at work beside it.
        os.nice(10)
    return run_until_stopped(_drain(settings))


async def _drain(settings: Settings) -> int:
    from evercontext.index.queue_worker import drain as drain_queue

    if settings.rag_url:
        return await _announce(settings, settings.rag_url)
    async with opened_index(settings) as index:
        reports = await drain_queue(index, await index_folder(settings), commits=True)
    touched = sum(report.touched for report in reports)
    print(translate("{files} brought up to date", files=counted(touched, "file")))
    return 0


async def _announce(settings: Settings, url: str) -> int:
    from evercontext.app.index import open_remote_index
    from evercontext.index.remote_ingest import announce
    from evercontext.index.walker import Walker
    from evercontext.settings.build_file_policy import agent_rules

    walker = Walker(settings.root.resolve(), agent_rules(settings))
    async with open_remote_index(settings, url) as remote:
        sent = await announce(walker, await index_folder(settings), remote, str(uuid.uuid4()))
    print(translate("{count} paths announced to {place}", count=sent, place=one_line(url)))
    return 0
