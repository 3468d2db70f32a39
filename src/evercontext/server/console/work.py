"""Take work from the browser: what can be chosen, start, stop, retry."""

from __future__ import annotations

import asyncio
from typing import Any

from evercontext.app.models import available_models, choose_model
from evercontext.domain.tool import Mode
from evercontext.errors import InvalidArguments, NotFound
from evercontext.events.log_index import Ledger
from evercontext.server.console.live_runs import LiveRun, WorkOrder
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute
from evercontext.server.console.runs import find, real_path

MODES = (Mode.AGENT, Mode.PLAN, Mode.DRY_RUN)


async def show_choices(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET work``: the projects and modes that a task can be given."""
    places = await request.work.projects()
    return {
        "projects": [{"path": path, "name": name} for path, name in places.items()],
        "modes": [mode.value for mode in MODES],
    }


async def list_models(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET models``: those that are ready, and the one that would be used."""
    settings = request.app.settings
    chosen, known = await asyncio.gather(choose_model(settings), available_models(settings))
    names = [model.name for model in known if model.ready]
    if chosen and chosen.name not in names:
        names.insert(0, chosen.name)
    return {"chosen": chosen.name if chosen else None, "models": names}


async def start_work(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST work``: begin a task, or a turn of a conversation."""
    kind = request.body.get("kind")
    if kind not in ("task", "chat"):
        raise InvalidArguments("kind is task or chat")
    text = request.text("text").strip()
    if not text:
        raise InvalidArguments("say what to do: the text is empty")
    session = _name(request, "session")
    if session and kind != "chat":
        raise InvalidArguments("a session is gone on with by a message: kind is chat")
    order = WorkOrder(
        text=text,
        root=_name(request, "project") or request.app.memory.path,
        chat=kind == "chat",
        model=_name(request, "model"),
        mode=_mode(request),
        ask=request.switch("ask"),
        session=session,
        fork=request.body.get("fork") is True,
    )
    return _shape(await request.work.start(order))


def _name(request: ConsoleRequest, name: str) -> str | None:
    value = request.body.get(name)
    if value in (None, ""):
        return None
    if not isinstance(value, str) or len(value) > 4_000:
        raise InvalidArguments(f"{name} must be a text")
    return value


def _mode(request: ConsoleRequest) -> Mode:
    value = request.body.get("mode", Mode.AGENT.value)
    if value not in [mode.value for mode in MODES]:
        raise InvalidArguments(f"mode is one of {', '.join(mode.value for mode in MODES)}")
    return Mode(value)


def _shape(run: LiveRun) -> dict[str, Any]:
    return {"trace_id": run.trace_id, "session": run.session}


async def stop_run(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST work/*/stop``: stop what this console started."""
    request.work.stop(request.parts[0])
    return {"stopped": True}


async def retry_run(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST work/*/retry``: the same task once more, as its trace tells it."""
    trace_id, ask = request.parts[0], request.switch("ask")

    def read(ledger: Ledger) -> dict[str, Any]:
        run = find(ledger, trace_id)
        first = next((e for e in ledger.events(run, 0, 20) if e["type"] == "task"), None)
        if first is None:
            raise NotFound("that is no task", fix="Give it anew")
        return dict(first["data"])

    task = await request.feed.look(read)
    known = {mode.value for mode in MODES}
    order = WorkOrder(
        text=task["text"],
        root=await asyncio.to_thread(real_path, task["root"]),
        chat=bool(task.get("session")),
        model=task["model"] or None,
        mode=Mode(task["mode"]) if task["mode"] in known else Mode.AGENT,
        ask=ask,
        session=task.get("session"),
    )
    return _shape(await request.work.start(order))


ROUTES = (
    ConsoleRoute("GET", "work", show_choices),
    ConsoleRoute("GET", "models", list_models),
    ConsoleRoute("POST", "work", start_work),
    ConsoleRoute("POST", "work/*/stop", stop_run),
    ConsoleRoute("POST", "work/*/retry", retry_run),
)
