"""``evercontext skills``: what the agent can look up, and whether a project's may be used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.messages import translate
from evercontext.cli.options import confirm, json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, clip, counted, one_line, visible
from evercontext.errors import ConfigError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.agent.skill_file import Skill
    from evercontext.agent.skills import Skills


@click.group("skills")
def command() -> None:
    """See what the agent can look up; trust a project's skills.

    A skill is a folder with a SKILL.md: in .agents/skills of the project, in ~/.agents/skills, or
    in skills of EverContext's home. A project's is loaded only while you trust what it holds.
    """


@command.command("list")
@json_option
@root_option
def show_all(as_json: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Print every skill and whether it can be loaded."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    skills = _skills(settings).all()
    if as_json:
        print(json.dumps([_data(skill) for skill in skills], ensure_ascii=False))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for skill in skills:
        for line in skill_lines(skill, screen):
            screen.line(line)
    if not skills:
        print(translate("no skills; see docs/how-to/skills.md"), file=sys.stderr)


def skill_lines(skill: Skill, screen: Screen) -> list[str]:
    """One skill as a person reads it."""
    colour = "green" if skill.usable else "yellow"
    state = screen.paint(one_line(skill.state), colour)
    lines = [f"{screen.paint(one_line(skill.name), 'bold')}  {state}, {skill.origin}"]
    described = clip(one_line(skill.description), screen.width - 2)
    return lines + ([f"  {described}"] if described else [])


@command.command("show")
@click.argument("name")
@root_option
def show_one(name: str, root: str | None, allow_wide_root: bool | None) -> None:
    """Print a skill whole, trusted or not."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    _print(_skills(settings).find(name), Screen(sys.stdout, no_color=settings.no_color))


@command.command("trust")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Trust without asking.")
@root_option
def trust_one(name: str, yes: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Trust a skill, exactly as its files are now."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    skills = _skills(settings)
    skill = skills.find(name)
    if skill.problem:
        raise ConfigError(f"the skill {name} cannot be used: {skill.problem}", fix="Correct it")
    if skill.trusted:
        print(translate("{what} is trusted already", what=skill.name))
        return
    _print(skill, Screen(sys.stdout, no_color=settings.no_color))
    if not yes:
        confirm(f"Trust {counted(len(skill.files), 'file')} of {skill.place}?")
    skills.trust(skill)
    print(translate("trusted {what}", what=one_line(skill.name)))


@command.command("untrust")
@click.argument("name")
@root_option
def untrust_one(name: str, root: str | None, allow_wide_root: bool | None) -> None:
    """Trust a skill no longer."""
    skills = _skills(settings_of(root, allow_wide_root=allow_wide_root))
    skill = skills.find(name)
    if not skills.untrust(skill):
        fix = "Remove its folder" if skill.origin == "user" else "Nothing to take back"
        raise ConfigError(f"the skill {name} was not trusted here", fix=fix)
    print(translate("no longer trusted: {what}", what=one_line(skill.name)))


def _print(skill: Skill, screen: Screen) -> None:
    for line in skill_lines(skill, screen):
        screen.line(line)
    screen.line(f"  {one_line(skill.place)}: {one_line(', '.join(sorted(skill.files)))}", "dim")
    screen.line()
    screen.line(visible(skill.body))


def _data(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "origin": skill.origin,
        "state": skill.state,
        "place": skill.place,
        "files": sorted(skill.files),
    }


def _skills(settings: Settings) -> Skills:
    from evercontext.agent.skills import Skills

    return Skills(settings.root.resolve(), settings.home, Path.home())
