"""``evercontext projects``: which servers belong together, and how tools are looked for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.messages import translate
from evercontext.cli.options import json_option
from evercontext.cli.servers import with_app
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.access.router_projects import RouterProject
    from evercontext.app import EverContext

strategy_option = click.option(
    "--optimization",
    metavar="NAME",
    help="How tools are looked for: hybrid, bm25, cloud (asks EC_CATALOG_URL), null (every tool is"
    " listed), or the search of an installed package.",
)
path_option = click.option("--path", metavar="DIR", help="The directory it is bound to.")


@click.group("projects")
def command() -> None:
    """Say which servers belong together."""


@command.command("create")
@click.argument("id")
@path_option
@strategy_option
def create(id: str, path: str | None, optimization: str | None) -> int:
    """Make the project ID."""
    from evercontext.access.router_projects import Projects, RouterProject

    async def work(app: EverContext, screen: Screen) -> Outcome:
        projects = Projects(app.store)
        if any(project.id == id for project in await projects.all()):
            raise UsageError(f"there is a project {id!r} already", fix="Use: projects set")
        project = RouterProject(id, _place(path), _strategy(optimization or "hybrid"))
        await projects.put(project)
        print(translate("created {what}", what=_line(project)), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


@command.command("set")
@click.argument("id")
@path_option
@strategy_option
def change(id: str, path: str | None, optimization: str | None) -> int:
    """Change the project ID."""
    from evercontext.access.router_projects import Projects

    async def work(app: EverContext, screen: Screen) -> Outcome:
        projects = Projects(app.store)
        project = await projects.get(id)
        if path is not None:
            project = replace(project, path=_place(path))
        if optimization is not None:
            project = replace(project, optimization=_strategy(optimization))
        await projects.put(project)
        print(translate("now {what}", what=_line(project)), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


@command.command("remove")
@click.argument("id")
def remove(id: str) -> int:
    """Forget the project ID; its servers have to be removed first."""
    from evercontext.access.router_projects import Projects

    async def work(app: EverContext, screen: Screen) -> Outcome:
        await Projects(app.store).remove(id)
        print(translate("removed {what}", what=one_line(id)), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


@command.command("list")
@json_option
def list_projects(as_json: bool) -> int:
    """List the projects."""
    from evercontext.access.router_projects import Projects

    async def work(app: EverContext, screen: Screen) -> Outcome:
        projects = await Projects(app.store).all()
        if as_json:
            rows = [{"id": p.id, "path": p.path, "optimization": p.optimization} for p in projects]
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return Outcome.DONE
        for project in projects:
            screen.line(_line(project))
        if not projects:
            text = translate("no project yet; make one: evercontext projects create ID")
            print(text, file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


def _line(project: RouterProject) -> str:
    words = (project.id, project.optimization or "null", project.path)
    return "  ".join(one_line(word) for word in words if word)


def _place(path: str | None) -> str:
    return str(Path(path).resolve()) if path else ""


def _strategy(word: str) -> str | None:
    from evercontext.access.router_projects import OWN_SEARCHES
    from evercontext.catalog.plugged_search import installed_searches

    if word == "null" or word in OWN_SEARCHES:
        return None if word == "null" else word
    if word not in (searches := installed_searches()):
        known = ", ".join([*OWN_SEARCHES, "null", *searches])
        raise UsageError(f"there is no search {word[:80]!r}", fix=f"Use one of {known}")
    return word
