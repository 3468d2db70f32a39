"""The checks of ``evercontext doctor``, one function each: what is there, and how to fix it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Literal

from evercontext import __version__
from evercontext.errors import EverContextError, StoreGone
from evercontext.settings import KEY_FILE, STORED, Settings, masked, process_environment
from evercontext.settings.installation import this_installation
from evercontext.settings.keys import KEYRING

State = Literal["ok", "warn", "bad"]

_GIGABYTE = 1_000_000_000
_LEAST_DISK = 200_000_000
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``bad``: something needed is broken."""

    name: str
    state: State
    text: str
    fix: str | None = None


Examine = Callable[[Settings], Coroutine[None, None, Check]]


async def examine(settings: Settings) -> list[Check]:
    """Make every check; one that fails says so and stops no other."""
    safely = partial(_safely, debug=settings.debug)
    left = await safely("commands", _commands(settings))
    checks: list[Check] = []
    for check in _CHECKS:
        checks += await safely(check.__name__.strip("_"), _alone(check(settings)))
    checks += await safely("vendors", _vendors(settings))
    checks += await safely("ports", _ports(settings))
    checks += await safely("traces", _traces(settings))
    return checks + left


async def _safely(name: str, checks: Awaitable[list[Check]], *, debug: bool) -> list[Check]:
    try:
        return await checks
    except EverContextError as problem:
        return [Check(name, "bad", problem.message, problem.fix)]
    except Exception as problem:  # noqa: BLE001 - whatever is broken, the other rows are needed
        return [_unexpected(name, problem, debug=debug)]


def _unexpected(name: str, problem: Exception, *, debug: bool) -> Check:
    """Return the row of a check that failed itself; with ``debug`` print its traceback."""
    text = f"cannot be looked at: {type(problem).__name__}: {problem}"
    if not debug:
        return Check(name, "bad", text, "To see where, run: EC_DEBUG=1 evercontext doctor")
    import traceback

    traceback.print_exception(problem)
    return Check(name, "bad", text, "The traceback on standard error shows where")


async def _alone(check: Awaitable[Check]) -> list[Check]:
    return [await check]


async def _python(settings: Settings) -> Check:
    about = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("python", "ok", f"{about}, {sys.executable}")


async def _git(settings: Settings) -> Check:
    from evercontext.process.run import run

    try:
        done = await run(["git", "--version"], cwd=Path("/"), timeout=10)
    except EverContextError:
        fix = "Install git; without it there is no commit hook and no git status"
        return Check("git", "warn", "not found", fix)
    return Check("git", "ok", done.text.strip().removeprefix("git version "))


async def _model(settings: Settings) -> Check:
    from evercontext.app import available_models
    from evercontext.app.models import chosen_model, missing_model, ollama_lack

    try:
        if problem := await missing_model(settings):
            return Check("model", "bad", problem.message, problem.fix)
        choice = await chosen_model(settings)
        if problem := await ollama_lack(choice.name, settings):
            return Check("model", "bad", problem.message, problem.fix)
        listed = {model.name: model for model in await available_models(settings)}
    except EverContextError as error:
        return Check("model", "bad", error.message, error.fix)
    said, known = f"{choice.name} ({choice.reason})", listed.get(choice.name)
    if known and not known.ready:
        return Check("model", "bad", f"{said} is not ready", known.note)
    return Check("model", "ok", said)


async def _keys(settings: Settings) -> Check:
    lines = []
    for provider, name in STORED.items():
        value = getattr(settings, name)
        origin = settings.origins[name]
        lines.append(f"{provider} {masked(value)} ({origin})" if value else f"{provider} none")
    text = ", ".join(lines)
    problems = [notice for notice in settings.notices if KEY_FILE in notice or KEYRING in notice]
    if problems:
        return Check("keys", "warn", f"{text}; {problems[0]}", "Run: evercontext setup")
    return Check("keys", "ok", text)


async def _install(settings: Settings) -> Check:
    here = this_installation()
    return Check("install", "ok", f"{__version__} by {here.way}; newer: {here.upgrade()}")


async def _sandbox(settings: Settings) -> Check:
    from evercontext.process.sandbox import MOUNTS_FIX, Layer, available, choose, limitation

    try:
        layer = await asyncio.to_thread(choose, settings.sandbox)
    except EverContextError as error:
        return Check("sandbox", "warn", f"{error.message}; commands are refused", error.fix)
    if layer is Layer.NONE:
        fix = "Set EC_SANDBOX=auto"
        return Check(
            "sandbox", "warn", "none, by your own setting: commands run without a sandbox", fix
        )
    others = [f.layer for f in available() if f.works and f.layer != layer]
    why = next(f.why for f in available() if f.layer == layer)
    text = f"{layer} ({why})" + (f", also {others[0]}" if others else "")
    if limitation(layer):
        return Check("sandbox", "warn", text, MOUNTS_FIX)
    return Check("sandbox", "ok", text)


async def _home(settings: Settings) -> Check:
    home = settings.home
    place = home if home.exists() else _nearest(home)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as problem:
        fix = "Fix its permissions, or set EC_HOME"
        return Check("home", "bad", f"{home} cannot be written: {problem.strerror}", fix)
    if home.exists() and (owner := home.stat().st_uid) != os.geteuid():
        # Its owner can read the keys in it and change the settings; what we add is not the owner's.
        text = f"{home} belongs to another user ({_user_name(owner)})"
        fix = f"Run as that user, set EC_HOME, or run: chown -R {os.geteuid()} {quote(str(home))}"
        return Check("home", "warn", text, fix)
    return Check("home", "ok", f"{home}{'' if home.exists() else ' (made when needed)'}")


def _user_name(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user id {number}"


async def _commands(settings: Settings) -> list[Check]:
    """What commands left that were cut off is put away first, so that the rest speaks of now."""
    from evercontext.app.tools import settle_commands

    try:
        left = await settle_commands(settings)
    except OSError as problem:
        fix = "Fix the permissions of the home folder and the project"
        text = f"what they left cannot be looked at: {problem}"
        return [Check("commands", "bad", text, fix)]
    return [Check("commands", "warn", text, "Look at what was moved away") for text in left]


async def _traces(settings: Settings) -> list[Check]:
    """Said only if something is wrong: without traces nothing can be run, undone or resumed."""
    place = settings.traces
    fix = f"Move {place} away; it is made again when needed"
    if not place.is_dir():
        return [Check("traces", "bad", f"{place} is no folder", fix)] if place.exists() else []
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        return [Check("traces", "bad", f"{place} cannot be read and written", "chmod 700 it")]
    return []


def _nearest(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())


async def _server(settings: Settings) -> Check:
    from evercontext.storage.opener import open_store

    try:
        waiting = await _queued(settings)
        store = await open_store(settings.database, settings.database_url)
    except StoreGone as error:
        return Check("database", "bad", f"{error.message}{waiting}", error.fix)
    except EverContextError as error:
        return Check("database", "bad", error.message, error.fix)
    await store.close()
    said = f"{store.report.location}, schema {store.report.version}{waiting}"
    return Check("database", "ok", said)


async def _queued(settings: Settings) -> str:
    from evercontext.storage.opener import outbox_path
    from evercontext.storage.outbox import Outbox

    path = outbox_path(settings.database, settings.database_url or "")
    number = await asyncio.to_thread(Outbox(path).count)
    refused = await asyncio.to_thread(Outbox(path).count, "refused")
    told = f"; queued on this machine and not yet stored: {number:,}" if number else ""
    return f"{told}; refused by the server and set aside: {refused:,}" if refused else told


async def _database(settings: Settings) -> Check:
    """The database, and whether something waits for one that is not set any more."""
    check = await _present_database(settings)
    waiting = await asyncio.to_thread(_waiting_elsewhere, settings)
    if not waiting:
        return check
    told = f"{check.text}; waiting for another database: {waiting:,} (in outbox/)"
    fix = check.fix or "Run any command once with the EC_DATABASE_URL they were meant for"
    return Check(check.name, "warn" if check.state == "ok" else check.state, told, fix)


def _waiting_elsewhere(settings: Settings) -> int:
    from evercontext.storage.opener import outbox_path
    from evercontext.storage.outbox import Outbox

    url, folder = settings.database_url, settings.database.parent / "outbox"
    try:
        ours = outbox_path(settings.database, url) if url else None
        return sum(Outbox(path).count() for path in folder.glob("*.db") if path != ours)
    except EverContextError:
        # An address that is none, or a file that is damaged: said elsewhere.
        return 0


async def _present_database(settings: Settings) -> Check:
    from evercontext.storage.sqlite_recovery import find_damage

    if settings.database_url:
        return await _server(settings)
    path = settings.database
    if not path.exists():
        return Check("database", "ok", f"{path} (made when needed)")
    try:
        damage = await asyncio.to_thread(find_damage, path)
    except (EverContextError, OSError) as problem:
        return Check("database", "bad", f"{path}: {problem}", "Close other programs that use it")
    if damage:
        fix = "Run: evercontext memory list (it moves the file aside and saves what is readable)"
        return Check("database", "bad", f"{path}: {damage}", fix)
    return Check("database", "ok", f"{path}, {path.stat().st_size // 1024:,} KiB")


async def _root(settings: Settings) -> Check:
    from evercontext.settings.directories import check_root

    root = settings.root
    try:
        check_root(settings)
    except EverContextError as error:
        return Check("root", "warn", error.message, error.fix)
    if not os.access(root, os.W_OK):
        return Check("root", "warn", f"{root} is read-only", "Fix its permissions to make changes")
    return Check("root", "ok", str(root))


async def _terminal(settings: Settings) -> Check:
    encoding = (sys.stdout.encoding or "unknown").lower()
    if encoding not in ("utf-8", "utf8"):
        return Check("terminal", "warn", f"encoding {encoding}", "Set LANG=C.UTF-8")
    term = process_environment().get("TERM") or "unset"
    return Check(
        "terminal", "ok", f"UTF-8, TERM {term}{', no colours' if settings.no_color else ''}"
    )


async def _disk(settings: Settings) -> Check:
    place = settings.home if settings.home.exists() else _nearest(settings.home)
    free = shutil.disk_usage(place).free
    said = f"{free / _GIGABYTE:.1f} GB free at {place}"
    if free < _LEAST_DISK:
        return Check("disk", "bad", said, "Free some space")
    return Check("disk", "warn" if free < _GIGABYTE else "ok", said)


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


async def _vendors(settings: Settings) -> list[Check]:
    """The programs of vendors that are installed; one that does not fit is passed over."""
    from evercontext.app.models import vendor_programs

    programs = await vendor_programs(settings)
    return [
        Check(program.name, "ok" if program.fits else "warn", program.text, program.fix)
        for program in programs
    ]


async def _ports(settings: Settings) -> list[Check]:
    return [
        await _port("gateway", settings.host, settings.port, "EC_PORT"),
        await _port("router", settings.host, settings.router_port, "EC_ROUTER_PORT"),
        await _port("evaluator", settings.evaluator_host, settings.evaluator_port, "MCP_PORT"),
    ]


async def _port(door: str, host: str, port: int, variable: str) -> Check:
    name = f"port {port}"
    try:
        answer = await asyncio.wait_for(_greeting(host, port), _PATIENCE)
    except ConnectionRefusedError:
        return Check(name, "ok", f"free for the {door}")
    except (OSError, TimeoutError) as problem:
        answer = str(problem)
    # Only our doors answer with the trace they made for the question.
    if "x-trace-id" in answer.lower():
        return Check(name, "ok", f"our {door} is running")
    return Check(name, "warn", "another program uses it", f"Stop it, or set {variable}")


async def _greeting(host: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await writer.drain()
        return (await reader.read(4096)).decode("utf-8", "replace")
    finally:
        writer.close()
