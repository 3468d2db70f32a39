"""``evercontext doctor``: what works on this machine, and how to fix what does not."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence

import click

from evercontext.cli.checkup import Check, examine
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, readable_settings, root_option
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.outcome import Outcome

_COLOURS = {"ok": "green", "warn": "yellow", "bad": "red"}


@click.command("doctor")
@json_option
@root_option
def command(as_json: bool, root: str | None, allow_wide_root: bool | None) -> int:
    """Check this machine; say how to fix what is missing.

    Exits with 1 if something that is needed is broken; a warning is not.
    """
    settings, problems = readable_settings(root, allow_wide_root=allow_wide_root)
    checks = [Check("settings", "bad", problem.message, problem.fix) for problem in problems]
    checks += run_until_stopped(examine(settings))
    if as_json:
        found = [dataclasses.asdict(check) for check in checks]
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _print(checks, Screen(sys.stdout, no_color=settings.no_color))
    broken = any(check.state == "bad" for check in checks)
    return int(Outcome.FAILED if broken else Outcome.DONE)


def _print(checks: Sequence[Check], screen: Screen) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        word = screen.paint(check.state.ljust(4), _COLOURS[check.state])
        screen.line(f"{word}  {check.name.ljust(width)}  {one_line(check.text)}")
        if check.fix and check.state != "ok":
            screen.line(f"{' ' * (width + 8)}{one_line(check.fix)}", "dim")
