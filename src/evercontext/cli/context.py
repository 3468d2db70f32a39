"""``evercontext context``: what would be sent to the model, and why."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import json_option, root_option, settings_of, tell
from evercontext.cli.terminal import Screen, counted, visible
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.agent.request_preview import Preview, PreviewLayer


@click.group("context")
def command() -> None:
    """See what would be sent to the model for a task."""


@command.command("show")
@click.option("-t", "--task", required=True, metavar="TEXT", help="The task.")
@click.option("-m", "--model", metavar="NAME", help="The model. Default: the configured one.")
@json_option
@root_option
def show(task: str, model: str | None, as_json: bool, **place: Any) -> int:
    """Show the request for a task, layer by layer, with tokens and reasons. Nothing is sent."""
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    return int(run_until_stopped(_show(settings, task, model, as_json)))


async def _show(settings: Settings, task: str, model: str | None, as_json: bool) -> Outcome:
    from evercontext.app import EverContext

    async with EverContext.open(settings) as app:
        tell(app)
        preview = await app.preview(task, model)
    if as_json:
        print(
            json.dumps(
                {**dataclasses.asdict(preview), "tokens": preview.tokens, "over": preview.over},
                ensure_ascii=False,
            )
        )
        return Outcome.DONE
    screen = Screen(sys.stdout, no_color=settings.no_color)
    screen.line(_head(preview), "bold")
    if preview.over:
        text = "{tokens} tokens too many: it does not fit, and would not be sent"
        screen.line(translate(text, tokens=f"{preview.over:,}"), "red")
    for layer in preview.layers:
        _print(layer, screen)
    return Outcome.DONE


def _head(preview: Preview) -> str:
    return translate(
        "{model}: {tokens} of {window} tokens ({how}), {reserve} kept free for the answer",
        model=preview.model,
        tokens=f"{preview.tokens:,}",
        window=f"{preview.window:,}",
        how=translate("counted" if preview.exact else "estimated"),
        reserve=f"{preview.reserve:,}",
    )


def _print(layer: PreviewLayer, screen: Screen) -> None:
    screen.line("")
    screen.line(f"{layer.name}  {counted(layer.tokens, 'token')}", "bold")
    for line in visible(layer.text).split("\n"):
        screen.line(f"  {line}")
    for why in layer.reasons:
        signals = ", ".join(f"{name} {value:+.2f}" for name, value in why["reasons"].items())
        similar = translate("similarity {value}", value=f"{why['similarity']:.2f}")
        screen.line(f"  {why['id']}  {similar}  {signals}", "dim")
