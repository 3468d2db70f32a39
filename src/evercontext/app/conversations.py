"""Open conversations: new ones, the last one, one by its id, or a copy of one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from evercontext.agent.conversation import Conversation
from evercontext.agent.open_project import ESSENTIAL_TOOLS
from evercontext.agent.project_repair import checks_and_repair
from evercontext.agent.task_limits import effort_of, limits_of
from evercontext.agent.todo import todo_tool
from evercontext.app.application import EverContext
from evercontext.app.models import open_model
from evercontext.context.token_calibration import Calibrations
from evercontext.domain.event import Notice
from evercontext.domain.model import Model
from evercontext.domain.tool import Mode
from evercontext.errors import ModelProblem, SessionBusy, StoreGone, UsageError
from evercontext.memory.session_search import look_back_tool
from evercontext.memory.sessions import Session
from evercontext.models.prices import price
from evercontext.process.name_lock import hold_name

LOCKS = "sessions.lock"


async def past_sessions(
    app: EverContext, limit: int = 20, *, everywhere: bool = False
) -> list[Session]:
    """Return the user's sessions with messages, newest first; end the crashed ones."""
    sessions, root, user_id = app.memory.sessions, app.settings.root, app.settings.user
    try:
        await sessions.repair()
        place = None if everywhere else root
        listed = await sessions.of_project(place, limit, user_id=user_id)
    except StoreGone:
        # Without the database only the sessions that began on this machine can be read.
        listed = await sessions.waiting_in(root, user_id=user_id)
        if not any(session.messages for session in listed):
            raise
    return [session for session in listed if session.messages]


async def find_session(app: EverContext, prefix: str) -> Session:
    """Return the session whose id begins with ``prefix``; ``last`` is the newest."""
    sessions = await past_sessions(app, limit=10_000)
    latest = prefix == "last"
    matches = sessions[:1] if latest else [s for s in sessions if s.id.startswith(prefix)]
    if len(matches) == 1:
        return matches[0]
    if not matches and (begun := await _begun(app, prefix)):
        return begun
    if not matches and (away := app.memory.away()):
        raise StoreGone(
            f"{prefix} is not among the sessions kept here: {away.message}", fix=away.fix
        )
    problem = f"this directory has no session {prefix}"
    if matches:
        problem = f"more than one session begins with {prefix}"
    raise UsageError(problem, fix="See `evercontext sessions list`")


async def _begun(app: EverContext, id: str) -> Session | None:
    """Return the session of exactly this id, in which nothing was said yet."""
    try:
        listed = await app.memory.sessions.of_project(
            app.settings.root, 10_000, user_id=app.settings.user
        )
    except StoreGone:
        return None
    return next((session for session in listed if session.id == id), None)


async def open_conversation(
    app: EverContext,
    *,
    resume: str | None = None,
    fork: bool = False,
    model_name: str | None = None,
    otherwise: str | None = None,
    mode: Mode = Mode.AGENT,
) -> Conversation:
    """Open a conversation in the app's root; ``resume`` takes a session up again.

    A session that has a model of its own goes on with it, unless another is named. Without one, or
    if it cannot be opened, ``otherwise`` or the default is used; neither was chosen for the
    session, so neither is stored with it.
    """
    sessions, messages = app.memory.sessions, app.memory.messages
    stored = await find_session(app, resume) if resume else None
    own = stored.metadata.get("model") if stored and not model_name else None
    model, problem = await _open_session_model(app, own, model_name or otherwise)
    bare = model.info.bare_name
    if stored and not fork:
        await sessions.restore(stored.id, bare)
        session = stored
    else:
        session = await sessions.create(app.settings.root, bare, user_id=app.settings.user)
        if stored:
            await messages.copy(stored.id, session.id)
            session = await sessions.adopt(session.id, stored)
    chosen = own or (model.info.name if model_name else None)
    if chosen and session.metadata.get("model") != chosen:
        await sessions.set_metadata(session.id, "model", chosen)
    if problem:
        app.events.emit(Notice(level="warning", text=problem), trace_id=session.id)
    conversation = Conversation(
        session=session,
        model=model,
        window=await Calibrations(app.store).window(model.info),
        toolbox=app.working_tools().along_with(
            [todo_tool(), look_back_tool(app.store, app.settings.root)]
        ),
        events=app.events,
        sessions=sessions,
        messages=messages,
        look=app.surroundings,
        root=str(app.settings.root),
        limits=limits_of(app.settings),
        price=price,
        effort=session.metadata.get("effort") or effort_of(app.settings),
        memory=app.memory,
        mode=mode,
        principal=app.principal,
        few=ESSENTIAL_TOOLS,
        background=app.background,
        problem=problem,
        hold=partial(_hold_session, app.settings.home),
    )
    await conversation.load()
    return conversation


def _hold_session(home: Path, session_id: str) -> AbstractContextManager[None]:
    """Let nobody else of this machine be answered in a session."""
    busy = SessionBusy(
        "this session is being answered in another window",
        fix="Wait for the answer, stop it there, or go on in a copy: /fork",
    )
    return hold_name(home / LOCKS, session_id, busy)


def check_after_changes(app: EverContext, talk: Conversation) -> None:
    """Let the project's checks run after a turn that changed files, as the settings say."""
    talk.verify, talk.repair = checks_and_repair(
        app.checks(detect=bool(app.settings.auto_test)),
        app.settings,
        app.workspace,
        by_default=False,
        tiny=talk.model.info.tiny,
    )


async def _open_session_model(
    app: EverContext, own: str | None, otherwise: str | None
) -> tuple[Model, str | None]:
    """Open the session's own model or another one; return why it is another."""
    if own is None:
        return await open_model(app.settings, otherwise), None
    try:
        return await open_model(app.settings, own), None
    except ModelProblem as error:
        model = await open_model(app.settings, otherwise)
        return model, (
            f"the model of this session, {own}, cannot be opened: {error.message}; it goes on with"
            f" {model.info.name}"
        )


async def switch_model(app: EverContext, conversation: Conversation, name: str) -> None:
    """Go on with another model; the old one stays if the new one cannot be opened."""
    calibrations = Calibrations(app.store)
    model = await open_model(app.settings, name)
    await calibrations.keep(conversation.model.info, conversation.window)
    await conversation.switch_model(model, await calibrations.window(model.info))
    await conversation.sessions.set_metadata(conversation.session.id, "model", model.info.name)
