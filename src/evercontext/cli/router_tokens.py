"""``evercontext tokens``: who else may use the tool router."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.messages import translate
from evercontext.cli.options import json_option
from evercontext.cli.servers import note_unknown, with_app
from evercontext.cli.terminal import Screen, local_time, one_line
from evercontext.domain.outcome import Outcome

if TYPE_CHECKING:
    from evercontext.app import EverContext


@click.group("tokens")
def command() -> None:
    """Let other programs use the tool router."""


@command.command("create")
@click.argument("name")
@click.option("--project", "projects", multiple=True, metavar="ID", help="Only for this project.")
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only for this server.")
@click.option("--user", metavar="NAME", help="Whose memories its bearer sees and keeps.")
def create(name: str, projects: tuple[str, ...], servers: tuple[str, ...], user: str | None) -> int:
    """Make a token and print it; it cannot be shown again."""
    from evercontext.access.access_tokens import Tokens

    async def work(app: EverContext, screen: Screen) -> Outcome:
        tokens = Tokens(app.store)
        await note_unknown(app, projects=projects, servers=servers)
        scope = {"projects": projects or None, "servers": servers or None}
        print(await tokens.create(name, user=user, **scope))
        text = translate("shown once; the client sends it as Authorization: Bearer")
        print(text, file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


@command.command("list")
@json_option
def list_tokens(as_json: bool) -> int:
    """List the tokens by name; the secrets are not kept."""
    from evercontext.access.access_tokens import Tokens

    async def work(app: EverContext, screen: Screen) -> Outcome:
        tokens = await Tokens(app.store).all()
        rows = [
            {
                "name": token.name,
                "projects": sorted(token.projects) if token.projects is not None else None,
                "servers": sorted(token.servers) if token.servers is not None else None,
                "user": token.user,
                "created_at": token.created_at,
                "revoked_at": token.revoked_at,
            }
            for token in tokens
        ]
        if as_json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return Outcome.DONE
        for row in rows:
            state = translate("valid")
            if row["revoked_at"]:
                state = translate("revoked {time}", time=local_time(str(row["revoked_at"])))
            name = one_line(str(row["name"]))
            since = translate("made {time}", time=local_time(str(row["created_at"])))
            screen.line(f"{name}  {state}  {since}{_limits(row)}")
        if not rows:
            text = translate("no token yet; make one: evercontext tokens create NAME")
            print(text, file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


def _limits(row: Mapping[str, Any]) -> str:
    """Whom and what a token is for, where that is not everybody and everything."""
    user = row["user"] and translate("for {user}", user=one_line(str(row["user"])))
    only = [
        translate(text, name=one_line(name))
        for text, names in (("project {name}", "projects"), ("server {name}", "servers"))
        for name in row[names] or ()
    ]
    rest = translate("only {what}", what=", ".join(only)) if only else ""
    return "".join(f"  {part}" for part in (user, rest) if part)


@command.command("revoke")
@click.argument("name")
def revoke(name: str) -> int:
    """End the token NAME; its next call is refused."""
    from evercontext.access.access_tokens import Tokens

    async def work(app: EverContext, screen: Screen) -> Outcome:
        await Tokens(app.store).revoke(name)
        text = translate("revoked {name}: its next call is refused", name=one_line(name))
        print(text, file=sys.stderr)
        return Outcome.DONE

    return with_app(work)
