"""Plans as files: read with every problem named, and changed in an editor until they are valid."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen, labelled, one_line
from evercontext.errors import InvalidPlan, UsageError

if TYPE_CHECKING:
    from evercontext.agent.plan import TaskPlan

LONGEST_PLAN = 1_048_576


def read_plan(name: str) -> TaskPlan:
    """The plan of a file, or of stdin for ``-``; raises with everything that is wrong with it."""
    from evercontext.agent.plan import parse

    try:
        if name == "-":
            content = sys.stdin.buffer.read(LONGEST_PLAN + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(LONGEST_PLAN + 1)
        if len(content) > LONGEST_PLAN:
            raise InvalidPlan(f"{name} holds more than 1 MiB", fix="A plan has at most 50 tasks")
        return parse(content.decode("utf-8"))
    except OSError as problem:
        fix = "Name a plan file"
        raise UsageError(f"cannot read {name}: {problem.strerror}", fix=fix) from None
    except UnicodeDecodeError:
        raise InvalidPlan(f"{name} is not UTF-8", fix="Convert it with iconv") from None


def write_plan(path: Path, document: str) -> None:
    """Write a plan where the user wants it."""
    try:
        path.write_text(document + "\n", encoding="utf-8")
    except OSError as problem:
        fix = "Name another file with --output"
        raise UsageError(f"cannot write {path}: {problem.strerror}", fix=fix) from None


def edited_text(plan: TaskPlan) -> str | None:
    """What a person makes of a plan in their editor; ``None`` if it was not saved."""
    return _edit(json.dumps(plan.to_json(), indent=2, ensure_ascii=False) + "\n")


def _edit(text: str) -> str | None:
    try:
        return click.edit(text, extension=".json")
    except click.ClickException as problem:
        fix = "Set EDITOR to one that waits, such as nano"
        raise UsageError(f"the editor failed ({one_line(problem.message)})", fix=fix) from None


def editing(screen: Screen) -> Callable[[TaskPlan], Awaitable[TaskPlan]]:
    """Let a person change a plan in their editor until it is valid, or give it up."""
    from evercontext.agent.plan import parse

    async def edit(plan: TaskPlan) -> TaskPlan:
        text = json.dumps(plan.to_json(), indent=2, ensure_ascii=False) + "\n"
        while True:
            written = await asyncio.to_thread(_edit, text)
            if written is None:
                return plan
            if not written.strip():
                raise UsageError("the plan was emptied", fix="Nothing was done")
            try:
                return parse(written)
            except InvalidPlan as problem:
                screen.line(labelled("error", str(problem)), "red")
                if not sys.stdin.isatty() or not await asyncio.to_thread(_again):
                    raise
                text = written

    return edit


def _again() -> bool:
    print(translate("Edit it again? [Y/n] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"", "y", "yes"}
