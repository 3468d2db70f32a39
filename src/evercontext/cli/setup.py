"""``evercontext setup``: choose a model, store or remove a key; by questions or by flags."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, labelled, one_line, pad
from evercontext.errors import ModelAuthFailed, ModelProblem, NobodyToAsk, UsageError
from evercontext.settings import STORED, Settings
from evercontext.settings.installation import this_installation

if TYPE_CHECKING:
    from evercontext.app.models import Setup

_LONGEST_KEY = 4_096
_PROVIDER = click.Choice(list(STORED))


@click.command("setup")
@click.option("--provider", type=_PROVIDER, help="Use this provider; with --key-stdin.")
@click.option("--key-stdin", is_flag=True, help="Read the provider's key from stdin.")
@click.option("--model", metavar="NAME", help="With --provider: one of its models.")
@click.option(
    "--store",
    type=click.Choice(["keyring", "file"]),
    help="Where the key goes. Default: the system keyring, else a file only you can read.",
)
@click.option("--no-check", is_flag=True, help="Store the key without asking the provider.")
@click.option("--ollama", metavar="MODEL", help="Use this model of the running Ollama.")
@click.option("--small-model", is_flag=True, help="Fetch and use the small model: a first try.")
@click.option("--remove-key", type=_PROVIDER, help="Remove the stored key of a provider.")
@click.option("--show", is_flag=True, help="Show what is set up; change nothing.")
@json_option
def command(as_json: bool, **options: Any) -> int:
    """Choose a model: a key, a running Ollama, or a small one.

    Without options it asks. A key goes to the system keyring, or to a file that only you can
    read; a key in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY) wins over a stored one.

    \b
    Examples
      evercontext setup
      evercontext setup --provider openai --key-stdin < key.txt
      evercontext setup --ollama qwen3-coder
      evercontext setup --remove-key openai
    """
    _check(options)
    run_until_stopped(_set_up(options, as_json))
    return 0


def _check(options: dict[str, Any]) -> None:
    for name in ("ollama", "model"):
        if options[name] is not None and not options[name].strip():
            raise UsageError(f"--{name} names no model", fix="Give its name")
    actions = [
        name for name in ("provider", "ollama", "small_model", "remove_key") if options[name]
    ]
    if len(actions) > 1 or (actions and options["show"]):
        names = [f"--{name.replace('_', '-')}" for name in [*actions, "show"]][:2]
        raise UsageError(f"{' and '.join(names)} are two things", fix="Give one of them")
    if options["provider"] and not (options["key_stdin"] or options["model"]):
        raise UsageError("--provider needs a key", fix="Pipe it in and say --key-stdin")
    for name in ("key_stdin", "model", "store", "no_check"):
        if options[name] and not options["provider"]:
            raise UsageError(f"--{name.replace('_', '-')} needs --provider", fix="Name one")


async def _set_up(options: dict[str, Any], as_json: bool) -> None:
    from evercontext.app.models import setup

    settings = settings_of()
    summary = await _act(options, settings, as_json)
    if summary is None:
        from evercontext.cli.first_run import ask, can_ask

        if not can_ask() or as_json:
            raise NobodyToAsk(
                "there is no terminal to ask at",
                fix="Use --provider NAME --key-stdin, --ollama MODEL or --small-model",
            )
        await ask(settings_of)
        return
    state = await setup.read_setup(settings_of())
    if as_json:
        print(json.dumps(_as_object(state, summary), indent=2, ensure_ascii=False))
        return
    _print(state, summary, settings_of())


async def _act(options: dict[str, Any], settings: Settings, as_json: bool) -> str | None:
    """Do what the flags say; return what was done, or ``None`` if they say nothing."""
    from evercontext.app.models import setup

    if options["provider"]:
        return await _use_key(options, settings)
    if options["ollama"]:
        return f"{await setup.use_ollama(settings, options['ollama'])} is used from now on"
    if options["small_model"]:
        from evercontext.cli.first_run import fetch_small_model

        await fetch_small_model(settings, Screen(sys.stderr), quiet=as_json)
        return f"{setup.SMALL_MODEL} is used from now on: a first try, not a programmer"
    if options["remove_key"]:
        removed = setup.drop_key(settings, options["remove_key"])
        return (
            f"{'removed the' if removed else 'there is no'} stored key for {options['remove_key']}"
        )
    return "" if options["show"] else None


async def _use_key(options: dict[str, Any], settings: Settings) -> str:
    from evercontext.app.models import setup

    provider = options["provider"]
    if not options["key_stdin"]:
        if not getattr(settings, STORED[provider]):
            raise UsageError(f"there is no key for {provider}", fix="Pipe it in: --key-stdin")
        from evercontext.settings import keep

        keep(settings.home, "model_name", setup.provider_model(provider, options["model"]))
        return f"{provider} is used from now on"
    key = await _key_from_stdin(provider)
    if not options["no_check"]:
        try:
            await setup.check_key(provider, key, settings)
        except ModelAuthFailed as refusal:
            raise ModelAuthFailed(refusal.message, fix="Nothing was stored") from None
        except ModelProblem as problem:
            fix = "Nothing was stored; --no-check stores it without asking"
            raise type(problem)(problem.message, fix=fix) from None
    where = setup.use_key(settings, provider, key, place=options["store"], model=options["model"])
    return f"the key for {provider} is stored: {where}"


async def _key_from_stdin(provider: str) -> str:
    """The key that was piped in; typed at a terminal it must not be shown there."""
    if sys.stdin and sys.stdin.isatty():
        from evercontext.cli.first_run import read_answer

        text = translate("Paste the key for {provider}: ", provider=provider)
        return await read_answer(text, secret=True)
    return sys.stdin.read(_LONGEST_KEY) if sys.stdin else ""


def _as_object(state: Setup, summary: str) -> dict[str, Any]:
    problem = state.problem
    return {
        "done": summary or None,
        "model": state.choice.name if state.choice else None,
        "reason": state.choice.reason if state.choice else None,
        "ready": problem is None,
        "problem": problem and str(problem),
        "keys": [
            {"provider": key.provider, "key": key.masked, "origin": key.origin}
            for key in state.keys
        ],
        "ollama": None if state.ollama is None else list(state.ollama),
        "small_model": {"ready": state.small.ready, "note": state.small.note},
        "installed_with": this_installation().way,
    }


def _print(state: Setup, summary: str, settings: Settings) -> None:
    screen = Screen(sys.stdout, no_color=settings.no_color)
    if summary:
        screen.line(translate_composed(one_line(summary)))
        origin = settings.origins["model_name"]
        if origin.startswith("environment"):
            print(labelled("note", f"{origin} still decides the model here"), file=sys.stderr)
        return
    for key in state.keys:
        origin = translate_composed(key.origin or "")
        shown = f"{key.masked}  ({origin})" if key.masked else translate("no key")
        screen.line(f"{key.provider:<12}{shown}")
    running = translate("not running")
    if state.ollama is not None:
        running = ", ".join(state.ollama) or translate("no chat model")
    screen.line(f"{'ollama':<12}{one_line(running)}  ({settings.ollama_endpoint})")
    small = pad(translate("small model"), 12)
    screen.line(f"{small}{translate_composed(state.small.note)}")
    problem = ""
    if state.problem:
        reason = translate_composed(str(state.problem))
        problem = "  " + translate("not ready: {reason}", reason=reason)
    used = translate("none")
    if state.choice:
        used = f"{one_line(state.choice.name)}  ({translate_composed(state.choice.reason)})"
    screen.line(f"{pad(translate('used'), 12)}{used}{problem}")
