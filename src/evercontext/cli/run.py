"""``evercontext run``: one task, unattended, with an exit code that tells the truth."""

from __future__ import annotations

import dataclasses
import os
import select
import stat
import sys
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import checks_options, root_option, settings_of, warn
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.event import Event
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.access.permissions import Permissions
    from evercontext.app import EverContext
    from evercontext.tools.approval import Ask

LONGEST_TASK = 1_048_576
_PATIENCE = 1.0
"""Seconds to wait for a pipe that may never carry anything, when the task is known already."""


class View(Protocol):
    """Something that shows a task."""

    def __call__(self, event: Event) -> None:
        """Take one event."""

    def pause(self) -> None:
        """End an unfinished line."""


@click.command("run")
@click.option("-t", "--task", "-p", "--prompt", "task", metavar="TEXT", help="What to do.")
@root_option
@click.option("--dry-run", is_flag=True, help="Show calls and diffs; write nothing.")
@click.option("--ask", is_flag=True, help="Ask before every change, with its diff.")
@click.option("-y", "--yes", is_flag=True, help="Never ask (the default here).")
@click.option("-m", "--model", metavar="NAME", help="provider:model, see `model list`.")
@click.option(
    "--fallback-model",
    metavar="NAME",
    multiple=True,
    help="Used if the model is unreachable; may be repeated.",
)
@click.option("--planner", metavar="NAME", help="Model that plans the task first.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="What stdout carries.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --output-format json.")
@checks_options
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Model calls at most.")
@click.option("--timeout", type=click.FloatRange(0.001), metavar="SECONDS", help="Time at most.")
@click.option("--max-budget-usd", type=click.FloatRange(0), metavar="USD", help="Money at most.")
def command(task: str | None, **given: Any) -> int:
    """Do one task in a project, unattended.

    The task comes from --task, from stdin, or from both together. Writes stay inside the root
    and inside policy; every change is shown and can be undone.

    \b
    Exit codes
      0 done                      5 approval needed or denied
      1 failed                    6 a limit was hit
      2 refused by policy        64 wrong usage
      3 model JSON invalid       75 provider unreachable
      4 done, but checks red    130 cancelled, 143 terminated

    \b
    Examples
      evercontext run --task "Add a --version flag to app/main.py"
      git diff | evercontext run --task "Write tests for this change"
      evercontext run --dry-run --task "..." > change.patch
    """
    if given["ask"] and given["yes"]:
        raise UsageError("--ask and --yes contradict each other", fix="Give one of them")
    text = whole_task(task)
    settings = _settings(given)
    style = "json" if given["as_json"] else given["output_format"]
    return int(run_until_stopped(_run(text, settings, style, given["dry_run"], given["ask"])))


def _settings(given: dict[str, Any]) -> Settings:
    return settings_of(
        given["root"],
        allow_wide_root=given["allow_wide_root"],
        model_name=given["model"],
        fallback_models=given["fallback_model"] or None,
        planner=given["planner"],
        test_cmd=given["test_cmd"],
        lint_cmd=given["lint_cmd"],
        auto_test=given["auto_test"],
        max_turns=given["max_turns"],
        timeout=given["timeout"],
        max_budget_usd=given["max_budget_usd"],
    )


async def _run(text: str, settings: Settings, style: str, dry: bool, ask: bool) -> Outcome:
    from evercontext.agent.task import new_trace_id
    from evercontext.app import EverContext
    from evercontext.cli.ask import asking_gate
    from evercontext.domain.tool import Mode
    from evercontext.tools.approval import Gate

    err = Screen(sys.stderr, no_color=settings.no_color)
    trace_id = new_trace_id()
    view = _view(settings, style, err, trace_id)
    gate = asking_gate(err, view.pause) if ask else Gate()
    mode = Mode.DRY_RUN if dry else Mode.AGENT
    async with EverContext.open(settings) as app:
        warn(app, err)
        gate = dataclasses.replace(gate, policy=await _permissions(app, ask))
        if ask:
            gate = dataclasses.replace(gate, ask=await _everywhere(app, gate.ask, err, view))
        stop = app.events.subscribe(_without_secrets(view))
        try:
            report = await app.run_task(text, mode=mode, gate=gate, trace_id=trace_id)
        finally:
            stop()
            view.pause()
    return report.outcome


async def _everywhere(app: EverContext, ask: Ask, err: Screen, view: View) -> Ask:
    """Let an open web console answer too."""
    from evercontext.app.asking import ask_everywhere

    def tell(text: str) -> None:
        view.pause()
        err.line(f"  {one_line(text)}", "bold")

    return await ask_everywhere(app, ask, tell)


async def _permissions(app: EverContext, ask: bool) -> Permissions:
    """The rules of the project, and below them what is asked for whatever was allowed."""
    from evercontext.access.permissions import Permissions, StoredRules

    root = str(app.settings.root.resolve())
    return Permissions(root, not ask, await StoredRules(app.store, root).all())


def _view(settings: Settings, style: str, err: Screen, trace_id: str) -> View:
    from evercontext.cli.json_view import JsonView
    from evercontext.cli.render import TextView

    out = Screen(sys.stdout, no_color=settings.no_color)
    if style == "text":
        return TextView(out, err, trace_id)
    return JsonView(out, trace_id, stream=style == "stream-json")


def _without_secrets(view: View) -> Callable[[Event], None]:
    # What a run prints ends up in the logs of somebody's CI.
    from evercontext.events.redact import Redactor, secret_values

    redactor = Redactor(secret_values(process_environment()))
    return lambda event: view(Event.from_json(redactor.value(event.to_json())))


def whole_task(task: str | None) -> str:
    """The task of the command line, of stdin, or of both together."""
    piped = _read_stdin(wait=task is None)
    text = (task or "").strip()
    if piped.strip():
        text = f"{text}\n\n<stdin>\n{piped.rstrip()}\n</stdin>" if text else piped.strip()
    if not text:
        raise UsageError("the task is empty", fix='Say what to do: evercontext run --task "..."')
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError("the task is not valid UTF-8", fix="Use a UTF-8 terminal or file")
    return unicodedata.normalize("NFC", text)


def _read_stdin(*, wait: bool) -> str:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty() or not _carries(wait):
        return ""
    content = sys.stdin.buffer.read(LONGEST_TASK + 1)
    if len(content) > LONGEST_TASK:
        raise UsageError("stdin holds more than 1 MiB", fix="Put it into a file of the project")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("stdin is not valid UTF-8", fix="Convert it with iconv") from None


def _carries(wait: bool) -> bool:
    """True if stdin is a file or a pipe with something in it; an idle pipe must not hang us."""
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISREG(kind):
        return True
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return False
    ready, _, _ = select.select([sys.stdin], [], [], None if wait else _PATIENCE)
    return bool(ready)
