"""``evercontext doctor``: what works on this machine, and how to fix what does not."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Literal

import click

from evercontext import __version__
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate_composed
from evercontext.cli.options import json_option, readable_settings, root_option
from evercontext.cli.terminal import Screen, columns_of, one_line, pad
from evercontext.domain.outcome import Outcome
from evercontext.errors import EverContextError, StoreGone
from evercontext.settings import KEY_FILE, STORED, Settings, masked, process_environment
from evercontext.settings.installation import this_installation
from evercontext.settings.provider_keys import KEYRING

State = Literal["ok", "warn", "bad"]

_COLOURS = {"ok": "green", "warn": "yellow", "bad": "red"}
_GIGABYTE = 1_000_000_000
_LARGE_LOG = 100_000_000
_LEAST_DISK = 200_000_000
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the report. ``bad``: something needed is broken."""

    name: str
    state: State
    text: str
    fix: str | None = None


@click.command("doctor")
@json_option
@root_option
def command(as_json: bool, root: str | None, allow_wide_root: bool | None) -> int:
    """Check this machine; say how to fix what is missing.

    Exits with 1 if something that is needed is broken; a warning is not.
    """
    settings, problems = readable_settings(root, allow_wide_root=allow_wide_root)
    checks = [DoctorCheck("settings", "bad", problem.message, problem.fix) for problem in problems]
    checks += run_until_stopped(examine(settings))
    if as_json:
        rows = [dataclasses.asdict(check) for check in checks]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print(checks, Screen(sys.stdout, no_color=settings.no_color))
    broken = any(check.state == "bad" for check in checks)
    return int(Outcome.FAILED if broken else Outcome.DONE)


def _print(checks: Sequence[DoctorCheck], screen: Screen) -> None:
    names = [translate_composed(check.name) for check in checks]
    width = max(map(columns_of, names))
    for check, name in zip(checks, names, strict=True):
        word = screen.paint(check.state.ljust(4), _COLOURS[check.state])
        screen.line(f"{word}  {pad(name, width)}  {translate_composed(one_line(check.text))}")
        if check.fix and check.state != "ok":
            fix = translate_composed(one_line(check.fix))
            screen.line(f"{' ' * (width + 8)}{fix}", "dim")


Examine = Callable[[Settings], Coroutine[None, None, DoctorCheck]]


async def examine(settings: Settings) -> list[DoctorCheck]:
    """Make every check; one that fails says so and stops no other."""
    safely = partial(_safely, debug=settings.debug)
    left = await safely("commands", _commands(settings))
    checks: list[DoctorCheck] = []
    for check in _CHECKS:
        checks += await safely(check.__name__.strip("_"), _alone(check(settings)))
    checks += await safely("vendors", _vendors(settings))
    checks += await safely("ports", _ports(settings))
    checks += await safely("traces", _traces(settings))
    return checks + left


async def _safely(
    name: str, checks: Awaitable[list[DoctorCheck]], *, debug: bool
) -> list[DoctorCheck]:
    try:
        return await checks
    except EverContextError as problem:
        return [DoctorCheck(name, "bad", problem.message, problem.fix)]
    except Exception as problem:  # noqa: BLE001 - whatever is broken, the other rows are needed
        return [_unexpected(name, problem, debug=debug)]


def _unexpected(name: str, problem: Exception, *, debug: bool) -> DoctorCheck:
    """Return the row of a check that failed itself; with ``debug`` print its traceback."""
    text = f"cannot be looked at: {type(problem).__name__}: {problem}"
    if not debug:
        return DoctorCheck(name, "bad", text, "To see where, run: EC_DEBUG=1 evercontext doctor")
    import traceback

    traceback.print_exception(problem)
    return DoctorCheck(name, "bad", text, "The traceback on standard error shows where")


async def _alone(check: Awaitable[DoctorCheck]) -> list[DoctorCheck]:
    return [await check]


async def _python(settings: Settings) -> DoctorCheck:
    about = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return DoctorCheck("python", "ok", f"{about}, {sys.executable}")


async def _git(settings: Settings) -> DoctorCheck:
    from evercontext.process.run import run

    try:
        done = await run(["git", "--version"], cwd=Path("/"), timeout=10)
    except EverContextError:
        fix = "Install git; without it there is no commit hook and no git status"
        return DoctorCheck("git", "warn", "not found", fix)
    return DoctorCheck("git", "ok", done.text.strip().removeprefix("git version "))


async def _model(settings: Settings) -> DoctorCheck:
    from evercontext.app import available_models
    from evercontext.app.models import (
        chosen_model,
        doubt_about_model,
        missing_model,
        mistyped_fallback,
        ollama_lack,
    )

    try:
        if problem := await missing_model(settings) or await mistyped_fallback(settings):
            return DoctorCheck("model", "bad", problem.message, problem.fix)
        choice = await chosen_model(settings)
        if problem := await ollama_lack(choice.name, settings):
            return DoctorCheck("model", "bad", problem.message, problem.fix)
        listed = {model.name: model for model in await available_models(settings)}
    except EverContextError as error:
        return DoctorCheck("model", "bad", error.message, error.fix)
    text, known = f"{choice.name} ({choice.reason})", listed.get(choice.name)
    if known and not known.ready:
        return DoctorCheck("model", "bad", f"{text} is not ready", known.note)
    for name in (choice.name, *settings.fallback_models):
        if name not in listed and (doubt := await doubt_about_model(name, settings)):
            fix = "If the name is right, nothing; else see: evercontext model list"
            return DoctorCheck("model", "warn", f"{text}; {name}: {doubt}", fix)
    return DoctorCheck("model", "ok", text)


async def _keys(settings: Settings) -> DoctorCheck:
    lines = []
    for provider, name in STORED.items():
        value = getattr(settings, name)
        origin = settings.origins[name]
        lines.append(f"{provider} {masked(value)} ({origin})" if value else f"{provider} none")
    text = ", ".join(lines)
    problems = [notice for notice in settings.notices if KEY_FILE in notice or KEYRING in notice]
    if problems:
        return DoctorCheck("keys", "warn", f"{text}; {problems[0]}", "Run: evercontext setup")
    return DoctorCheck("keys", "ok", text)


async def _install(settings: Settings) -> DoctorCheck:
    here = this_installation()
    return DoctorCheck("install", "ok", f"{__version__} by {here.way}; newer: {here.upgrade()}")


async def _sandbox(settings: Settings) -> DoctorCheck:
    from evercontext.process.sandbox import MOUNTS_FIX, Layer, available, choose, limitation

    try:
        layer = await asyncio.to_thread(choose, settings.sandbox)
    except EverContextError as error:
        return DoctorCheck("sandbox", "warn", f"{error.message}; commands are refused", error.fix)
    if layer is Layer.NONE:
        fix = "Set EC_SANDBOX=auto"
        return DoctorCheck(
            "sandbox", "warn", "none, by your own setting: commands run without a sandbox", fix
        )
    others = [f.layer for f in available() if f.works and f.layer != layer]
    why = next(f.why for f in available() if f.layer == layer)
    text = f"{layer} ({why})" + (f", also {others[0]}" if others else "")
    if limitation(layer):
        return DoctorCheck("sandbox", "warn", text, MOUNTS_FIX)
    return DoctorCheck("sandbox", "ok", text)


async def _home(settings: Settings) -> DoctorCheck:
    home = settings.home
    place = home if home.exists() else _nearest(home)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as problem:
        fix = "Fix its permissions, or set EC_HOME"
        return DoctorCheck("home", "bad", f"{home} cannot be written: {problem.strerror}", fix)
    if home.exists() and (owner := home.stat().st_uid) != os.geteuid():
        # Its owner can read the keys in it and change the settings; what we add is not the owner's.
        text = f"{home} belongs to another user ({_user_name(owner)})"
        fix = f"Run as that user, set EC_HOME, or run: chown -R {os.geteuid()} {quote(str(home))}"
        return DoctorCheck("home", "warn", text, fix)
    return DoctorCheck("home", "ok", f"{home}{'' if home.exists() else ' (made when needed)'}")


def _user_name(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user id {number}"


async def _commands(settings: Settings) -> list[DoctorCheck]:
    """What commands left that were cut off is put away first, so that the rest speaks of now."""
    from evercontext.app.tools import settle_commands

    try:
        left = await settle_commands(settings)
    except OSError as problem:
        fix = "Fix the permissions of the home folder and the project"
        text = f"what they left cannot be looked at: {problem}"
        return [DoctorCheck("commands", "bad", text, fix)]
    return [DoctorCheck("commands", "warn", text, "Look at what was moved away") for text in left]


async def _traces(settings: Settings) -> list[DoctorCheck]:
    """Said only if something is wrong: without traces nothing can be run, undone or resumed."""
    place = settings.traces
    fix = f"Move {place} away; it is made again when needed"
    if not place.is_dir():
        return (
            [DoctorCheck("traces", "bad", f"{place} is no folder", fix)] if place.exists() else []
        )
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        return [DoctorCheck("traces", "bad", f"{place} cannot be read and written", "chmod 700 it")]
    size = await asyncio.to_thread(_size_of, place)
    if size < _LARGE_LOG:
        return []
    # Said once there is something to say: what is dropped by itself, and how to have it otherwise.
    most = f"the newest {settings.traces_mb:,} MB" if settings.traces_mb else "any size"
    days = f"{settings.traces_days} days" if settings.traces_days else "all days"
    text = f"{size / 1e6:,.0f} MB; kept are {most} (EC_TRACES_MB), {days} (EC_TRACES_DAYS)"
    return [DoctorCheck("traces", "ok", text)]


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _nearest(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())


async def _server(settings: Settings) -> DoctorCheck:
    from evercontext.access.acting_user import acting_user
    from evercontext.storage.opener import open_store

    try:
        waiting = await _queued(settings)
        store = await open_store(settings.database, settings.database_url, settings.login)
    except StoreGone as error:
        return DoctorCheck("database", "bad", f"{error.message}{waiting}", error.fix)
    except EverContextError as error:
        return DoctorCheck("database", "bad", error.message, error.fix)
    try:
        who = await acting_user(store, settings)
    except EverContextError as error:
        return DoctorCheck("database", "bad", error.message, error.fix)
    finally:
        await store.close()
    user = f", logged in as {who}" if who and who != settings.user else ""
    text = f"{store.report.location}, schema {store.report.version}{user}{waiting}"
    return DoctorCheck("database", "ok", text)


async def _queued(settings: Settings) -> str:
    from evercontext.storage.opener import outbox_path
    from evercontext.storage.outbox_file import Outbox

    path = outbox_path(settings.database, settings.database_url or "")
    number = await asyncio.to_thread(Outbox(path).count)
    refused = await asyncio.to_thread(Outbox(path).count, "refused")
    text = f"; queued on this machine and not yet stored: {number:,}" if number else ""
    return f"{text}; refused by the server and set aside: {refused:,}" if refused else text


async def _database(settings: Settings) -> DoctorCheck:
    """The database, and whether something waits for one that is not set any more."""
    check = await _present_database(settings)
    waiting = await asyncio.to_thread(_waiting_elsewhere, settings)
    if not waiting:
        return check
    text = f"{check.text}; waiting for another database: {waiting:,} (in outbox/)"
    fix = check.fix or "Run any command once with the EC_DATABASE_URL they were meant for"
    return DoctorCheck(check.name, "warn" if check.state == "ok" else check.state, text, fix)


def _waiting_elsewhere(settings: Settings) -> int:
    from evercontext.storage.opener import outbox_path
    from evercontext.storage.outbox_file import Outbox

    url, folder = settings.database_url, settings.database.parent / "outbox"
    try:
        ours = outbox_path(settings.database, url) if url else None
        return sum(Outbox(path).count() for path in folder.glob("*.db") if path != ours)
    except EverContextError:
        # An address that is none, or a file that is damaged: said elsewhere.
        return 0


async def _present_database(settings: Settings) -> DoctorCheck:
    from evercontext.storage.sqlite_recovery import find_damage

    if settings.database_url:
        return await _server(settings)
    path = settings.database
    if not path.exists():
        return DoctorCheck("database", "ok", f"{path} (made when needed)")
    try:
        damage = await asyncio.to_thread(find_damage, path)
    except (EverContextError, OSError) as problem:
        return DoctorCheck(
            "database", "bad", f"{path}: {problem}", "Close other programs that use it"
        )
    if damage:
        fix = "Run: evercontext memory list (it moves the file aside and saves what is readable)"
        return DoctorCheck("database", "bad", f"{path}: {damage}", fix)
    return DoctorCheck("database", "ok", f"{path}, {path.stat().st_size // 1024:,} KiB")


async def _root(settings: Settings) -> DoctorCheck:
    from evercontext.settings.directories import check_root

    root = settings.root
    try:
        check_root(settings)
    except EverContextError as error:
        return DoctorCheck("root", "warn", error.message, error.fix)
    if not os.access(root, os.W_OK):
        return DoctorCheck(
            "root", "warn", f"{root} is read-only", "Fix its permissions to make changes"
        )
    return DoctorCheck("root", "ok", str(root))


async def _terminal(settings: Settings) -> DoctorCheck:
    encoding = (sys.stdout.encoding or "unknown").lower()
    if encoding not in ("utf-8", "utf8"):
        return DoctorCheck("terminal", "warn", f"encoding {encoding}", "Set LANG=C.UTF-8")
    term = process_environment().get("TERM") or "unset"
    return DoctorCheck(
        "terminal", "ok", f"UTF-8, TERM {term}{', no colours' if settings.no_color else ''}"
    )


async def _disk(settings: Settings) -> DoctorCheck:
    place = settings.home if settings.home.exists() else _nearest(settings.home)
    free = shutil.disk_usage(place).free
    text = f"{free / _GIGABYTE:.1f} GB free at {place}"
    if free < _LEAST_DISK:
        return DoctorCheck("disk", "bad", text, "Free some space")
    return DoctorCheck("disk", "warn" if free < _GIGABYTE else "ok", text)


_CHECKS: tuple[Examine, ...] = (
    _python,
    _install,
    _git,
    _model,
    _keys,
    _sandbox,
    _home,
    _database,
    _root,
    _terminal,
    _disk,
)


async def _vendors(settings: Settings) -> list[DoctorCheck]:
    """The programs of vendors that are installed; one that does not fit is passed over."""
    from evercontext.app.models import vendor_programs

    programs = await vendor_programs(settings)
    return [
        DoctorCheck(program.name, "ok" if program.fits else "warn", program.text, program.fix)
        for program in programs
    ]


async def _ports(settings: Settings) -> list[DoctorCheck]:
    return [
        await _port("gateway", settings.host, settings.port, "EC_PORT"),
        await _port("router", settings.host, settings.router_port, "EC_ROUTER_PORT"),
        await _port("evaluator", settings.evaluator_host, settings.evaluator_port, "MCP_PORT"),
    ]


async def _port(door: str, host: str, port: int, variable: str) -> DoctorCheck:
    name = f"port {port}"
    try:
        answer = await asyncio.wait_for(_greeting(host, port), _PATIENCE)
    except ConnectionRefusedError:
        return DoctorCheck(name, "ok", f"free for the {door}")
    except (OSError, TimeoutError) as problem:
        answer = str(problem)
    # Only our servers answer with the trace they made for the question.
    if "x-trace-id" in answer.lower():
        return DoctorCheck(name, "ok", f"our {door} is running")
    return DoctorCheck(name, "warn", "another program uses it", f"Stop it, or set {variable}")


async def _greeting(host: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await writer.drain()
        return (await reader.read(4096)).decode("utf-8", "replace")
    finally:
        writer.close()
