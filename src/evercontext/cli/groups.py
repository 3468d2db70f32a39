"""``evercontext groups``: users of a shared database who are allowed things together."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from evercontext.cli.messages import translate
from evercontext.cli.options import json_option
from evercontext.cli.terminal import Screen, one_line
from evercontext.cli.users import with_users

if TYPE_CHECKING:
    from evercontext.access.users import Users


@click.group("groups")
def command() -> None:
    """Put users of a shared database into groups; `users grant GROUP --group` lets them work."""


@command.command("add")
@click.argument("group")
@click.argument("users", nargs=-1)
def add(group: str, users: tuple[str, ...]) -> None:
    """Make a group, or put more USERS into one."""

    async def work(known: Users, screen: Screen) -> None:
        await known.add_to_group(group, list(users))
        note = translate("{group}: {count} users added", group=one_line(group), count=len(users))
        print(note, file=sys.stderr)

    with_users(work)


@command.command("list")
@json_option
def list_groups(as_json: bool) -> None:
    """List the groups and who is in them."""

    async def work(known: Users, screen: Screen) -> None:
        groups = await known.groups()
        if as_json:
            print(json.dumps(groups, indent=2, ensure_ascii=False))
            return
        for name, users in groups.items():
            listed = ", ".join(map(one_line, users)) or translate("(nobody)")
            screen.line(f"{one_line(name)}  {listed}")
        if not groups:
            print(translate("no group yet: evercontext groups add GROUP USER"), file=sys.stderr)

    with_users(work)


@command.command("remove")
@click.argument("group")
@click.argument("users", nargs=-1)
def remove(group: str, users: tuple[str, ...]) -> None:
    """Take USERS out of a group; without any, end the group and what it was allowed."""

    async def work(known: Users, screen: Screen) -> None:
        await known.remove_from_group(group, list(users))
        ended = translate("the group has ended")
        print(f"{one_line(group)}: -{', '.join(users) if users else ended}", file=sys.stderr)

    with_users(work)
