"""``evercontext db``: see the database, bring it up to date, copy it into another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, counted
from evercontext.errors import ConfigError, NotFound, UsageError

if TYPE_CHECKING:
    from evercontext.settings import Settings
    from evercontext.storage.database_status import DatabaseStatus
    from evercontext.storage.store import Store

_SCHEMES = ("postgresql://", "postgres://")
_PLACE = "'home' (the file in the home folder), 'shared' (EC_DATABASE_URL), a file, or an address"


@click.group("db")
def command() -> None:
    """See the database, bring it up to date, copy it into another."""


@command.command("status")
@json_option
def status(as_json: bool) -> None:
    """Say which database is used, its schema and what it holds; nothing is changed."""
    settings = settings_of(None)
    state = run_until_stopped(_status(settings))
    if as_json:
        print(json.dumps(state.to_json(), indent=2))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    screen.line(f"{state.kind}  {state.location}")
    schema = translate("schema   {version} of {known}", version=state.version, known=state.known)
    screen.line(schema + _advice(state))
    screen.line(translate("memories are chosen {how}", how=translate_composed(state.memory_search)))
    for name, count in state.rows.items():
        screen.line(f"  {name:18}{count:>12,}")


def _advice(state: DatabaseStatus) -> str:
    if state.version == state.known:
        return ""
    if state.version > state.known:
        return ": " + translate("update evercontext")
    return ": " + translate("the next command that opens it, or db migrate, brings it up to date")


async def _status(settings: Settings) -> DatabaseStatus:
    from evercontext.storage.database_status import postgres_status, sqlite_status
    from evercontext.storage.opener import check_address

    if not settings.database_url:
        return sqlite_status(settings.database)
    check_address(settings.database_url)
    return await postgres_status(settings.database_url)


@command.command("migrate")
def migrate() -> None:
    """Bring the database's schema up to date now, instead of at its next use."""
    settings = settings_of(None)

    async def work() -> None:
        store = await _open("shared" if settings.database_url else "home", settings)
        report = store.report
        await store.close()
        text = "{place} has schema {version}"
        if report.migrated_from:
            text = "{place} has schema {version}, before {old}"
        values = {"place": report.location, "version": report.version, "old": report.migrated_from}
        print(translate(text, **values))
        if report.backup:
            print(translate("the copy from before is {place}", place=report.backup))

    run_until_stopped(work())


@command.command("grant")
@click.argument("role")
def grant(role: str) -> None:
    """Let servers and developers connect as ROLE, which owns nothing; it is made if missing.

    Under it everybody sees what their login may, and nothing else (see: evercontext users).
    """
    settings = settings_of(None)
    if not settings.database_url:
        raise ConfigError("EC_DATABASE_URL is not set", fix="Set it to the owner's address")

    async def work() -> None:
        from evercontext.storage.postgres import PostgresStore

        store = await _open("shared", settings)
        try:
            assert isinstance(store, PostgresStore)
            password = await store.grant_role(role)
        finally:
            await store.close()
        if password:
            print(password)
            note = translate("the password of the new role {role}; shown once", role=role)
            print(note, file=sys.stderr)
        note = translate("{role} can be used in EC_DATABASE_URL, with a login", role=role)
        print(note, file=sys.stderr)

    run_until_stopped(work())


@command.command("copy")
@click.option("--from", "source", required=True, metavar="DATABASE", help=f"{_PLACE}.")
@click.option(
    "--to", "target", required=True, metavar="DATABASE", help="The same; it must be empty."
)
def copy(source: str, target: str) -> None:
    """Copy a database into an empty one, of either kind.

    What was cut off goes on where it was when the same command is run again. Both sides are counted
    and hashed at the end. Stop what writes to the source first.
    """
    settings = settings_of(None)
    run_until_stopped(_copy(source, target, settings))


async def _copy(source: str, target: str, settings: Settings) -> None:
    from evercontext.storage.database_copy import copy_database

    _refuse_missing(source, settings)
    screen = Screen(sys.stderr, no_color=settings.no_color)
    first = await _open(source, settings)
    try:
        second = await _open(target, settings)
        try:
            if first.report.location == second.report.location:
                raise UsageError("a database cannot be copied into itself", fix="Name another one")

            def show(name: str, rows: int) -> None:
                if screen.is_terminal:
                    screen.write(f"\r{name}: {counted(rows, 'row')}\x1b[K")

            reports = await copy_database(first, second, progress=show)
            if screen.is_terminal:
                screen.write("\r\x1b[K")
        finally:
            await second.close()
    finally:
        await first.close()
    for report in reports:
        print(f"{report.name:18}{report.rows:>12,}  {report.digest[:16]}")
    rows = counted(sum(report.rows for report in reports), "row")
    print(translate("both hold the same: {rows}", rows=rows))


def _refuse_missing(place: str, settings: Settings) -> None:
    path = settings.database if place == "home" else Path(place)
    if place != "shared" and not place.startswith(_SCHEMES) and not path.is_file():
        raise NotFound(f"there is no database {path}", fix=f"Name {_PLACE}")


async def _open(place: str, settings: Settings) -> Store:
    """Open a database by its name; a server must be there."""
    from evercontext.storage.opener import check_address
    from evercontext.storage.sqlite import SqliteStore

    if place == "shared" and not settings.database_url:
        raise ConfigError("EC_DATABASE_URL is not set", fix="Set it, or name an address")
    url = settings.database_url if place == "shared" else place
    if url and url.startswith(_SCHEMES):
        check_address(url)
        from evercontext.storage.postgres import PostgresStore

        return await PostgresStore.open(url)
    if place == "shared":
        check_address(str(url))
    return await SqliteStore.open(settings.database if place == "home" else Path(place))
