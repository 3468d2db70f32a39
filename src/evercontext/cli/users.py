"""``evercontext users``: who may use a shared database, and what in which project."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import confirm, json_option, settings_of
from evercontext.cli.terminal import Screen, local_time, one_line

if TYPE_CHECKING:
    from evercontext.access.users import User, Users

_ROLES = ("reader", "member", "admin")
_days = click.option(
    "--days", type=click.IntRange(1, 3_650), metavar="N", help="The token ends after N days."
)
_project = click.option(
    "--project", metavar="NAME", help="By its name, such as git:host/path. Default: the one here."
)
_group = click.option("--group", is_flag=True, help="NAME is a group.")


@click.group("users")
def command() -> None:
    """Say who may use a shared database, and what in which project.

    \b
    With the first user the database keeps users apart by itself. Then make a role that owns
    nothing for servers and developers: evercontext db grant ROLE. They use its address in
    EC_DATABASE_URL and their token in EC_LOGIN, or send the token to a server.
    """


@command.command("add")
@click.argument("name")
@_days
@click.option("--restore", is_flag=True, help="A removed user of this name is the same person.")
@json_option
def add(name: str, days: int | None, restore: bool, as_json: bool) -> None:
    """Add a user and print the token; it cannot be shown again."""

    async def work(users: Users, screen: Screen) -> None:
        _show_token(name, await users.add(name, days=days, restore=restore), as_json)

    with_users(work)


@command.command("token")
@click.argument("name")
@_days
@click.option("--label", default="", metavar="TEXT", help="What it is for.")
@json_option
def token(name: str, days: int | None, label: str, as_json: bool) -> None:
    """Make one more token for a user and print it."""

    async def work(users: Users, screen: Screen) -> None:
        _show_token(name, await users.new_token(name, label=label, days=days), as_json)

    with_users(work)


def _show_token(name: str, secret: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"name": name, "token": secret}, ensure_ascii=False))
        return
    print(secret)
    note = translate("shown once; the user sets it as EC_LOGIN, or sends it as a bearer")
    print(note, file=sys.stderr)


@command.command("list")
@json_option
def list_users(as_json: bool) -> None:
    """List the users, their groups and what they may do."""

    async def work(users: Users, screen: Screen) -> None:
        everybody = await users.all()
        if as_json:
            print(json.dumps([u.to_json() for u in everybody], indent=2, ensure_ascii=False))
            return
        for user in everybody:
            screen.line(_described(user))
        if not everybody:
            print(translate("no user yet: evercontext users add NAME"), file=sys.stderr)

    with_users(work)


def _described(user: User) -> str:
    name = one_line(user.name)
    if user.removed_at:
        return translate("{name}  removed {time}", name=name, time=local_time(user.removed_at))
    groups = [f"@{one_line(group)}" for group in user.groups]
    projects = [f"{one_line(row.project)}:{row.role}" for row in user.projects]
    begin = translate("{name}  tokens: {count}", name=name, count=user.logins)
    return "  ".join([begin, *groups, *projects])


@command.command("remove")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """End a user: the next request with a token of theirs is refused. What they kept stays."""
    if not yes:
        confirm(f"End all tokens and memberships of {name}?")

    async def work(users: Users, screen: Screen) -> None:
        await users.remove(name)
        note = translate("removed {name}; what they kept is still there", name=one_line(name))
        print(note, file=sys.stderr)

    with_users(work)


@command.command("logout")
@click.argument("name")
def logout(name: str) -> None:
    """End every token of a user; the user stays."""

    async def work(users: Users, screen: Screen) -> None:
        ended = await users.log_out(name)
        note = translate("ended {count} tokens of {name}", count=ended, name=one_line(name))
        print(note, file=sys.stderr)

    with_users(work)


@command.command("grant")
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="What they may do there.")
@_project
@_group
def grant(name: str, role: str, project: str | None, group: bool) -> None:
    """Let a user or a group work in a project: read, or write too, or choose its members as well.

    An admin of the project may do this with their own login.
    """

    async def work(users: Users, screen: Screen) -> None:
        place = project or _here()
        await users.grant(name, place, role, group=group)
        _show_role(name, role, place)

    with_users(work)


@command.command("revoke")
@click.argument("name")
@_project
@_group
def revoke(name: str, project: str | None, group: bool) -> None:
    """Take a user or a group out of a project."""

    async def work(users: Users, screen: Screen) -> None:
        place = project or _here()
        await users.grant(name, place, None, group=group)
        _show_role(name, "nothing", place)

    with_users(work)


@command.command("members")
@_project
@json_option
def members(project: str | None, as_json: bool) -> None:
    """List who may do what in a project."""

    async def work(users: Users, screen: Screen) -> None:
        listed = await users.members(project or _here())
        if as_json:
            print(json.dumps([row.to_json() for row in listed], indent=2, ensure_ascii=False))
            return
        for row in listed:
            screen.line(f"{one_line(row.user or f'@{row.group}')}  {row.role}")
        if not listed:
            print(translate("nobody that you may see"), file=sys.stderr)

    with_users(work)


def _show_role(name: str, role: str, project: str) -> None:
    places = {"name": one_line(name), "role": role, "project": one_line(project)}
    print(translate("{name}: {role} in {project}", **places), file=sys.stderr)


def _here() -> str:
    from evercontext.files.project_identity import identity_of

    return identity_of(Path.cwd())


Work = Callable[["Users", Screen], Awaitable[Any]]


def with_users(work: Work) -> None:
    """Open the shared database, and do the work with its users."""
    settings = settings_of(None, allow_wide_root=True)

    async def opened() -> None:
        from evercontext.access.users import Users
        from evercontext.storage.opener import open_store

        store = await open_store(settings.database, settings.database_url, settings.login)
        try:
            await work(Users(store), Screen(sys.stdout, no_color=settings.no_color))
        finally:
            await store.close()

    run_until_stopped(opened())
