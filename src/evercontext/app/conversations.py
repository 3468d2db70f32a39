"""Opening conversations: new ones, the last one, one by its id, or a copy of one."""

from __future__ import annotations

from evercontext.agent.conversation import Conversation
from evercontext.agent.todo import todo_tool
from evercontext.app.calibrations import Calibrations
from evercontext.app.equipment import ESSENTIAL
from evercontext.app.house import EverContext, limits
from evercontext.app.models import open_model
from evercontext.app.prices import price
from evercontext.domain.event import Notice
from evercontext.domain.model import Model
from evercontext.domain.tool import Mode
from evercontext.errors import ModelProblem, StoreGone, UsageError
from evercontext.memory.session_search import look_back_tool
from evercontext.memory.sessions import Session


async def past_sessions(
    app: EverContext, limit: int = 20, *, everywhere: bool = False
) -> list[Session]:
    """The user's sessions here that hold anything, newest first; crashed ones are ended now."""
    sessions, root, user_id = app.memory.sessions, app.settings.root, app.settings.user
    try:
        await sessions.repair()
        place = None if everywhere else root
        found = await sessions.of_project(place, limit, user_id=user_id)
    except StoreGone:
        # Those that were begun here meanwhile can be read; of none other can it be said.
        found = await sessions.waiting_in(root, user_id=user_id)
        if not any(session.messages for session in found):
            raise
    return [session for session in found if session.messages]


async def find_session(app: EverContext, wanted: str) -> Session:
    """The session of this directory whose id begins so; ``last`` is the newest."""
    found = await past_sessions(app, limit=10_000)
    fitting = found[:1] if wanted == "last" else [s for s in found if s.id.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and (away := app.memory.away()):
        raise StoreGone(f"{wanted} is not among the sessions kept here: {away.message}",
                        fix=away.fix)  # fmt: skip
    problem = "more than one session begins with" if fitting else "this directory has no session"
    raise UsageError(f"{problem} {wanted}", fix="See `evercontext sessions list`")


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

    A session that was given a model of its own goes on with that, unless another is named. Where
    none is, or its own cannot be opened, ``otherwise`` is taken, or the default: neither was chosen
    for the session, so neither is kept with it.
    """
    sessions, messages = app.memory.sessions, app.memory.messages
    kept = await find_session(app, resume) if resume else None
    own = kept.metadata.get("model") if kept and not model_name else None
    model, problem = await _opened(app, own, model_name or otherwise)
    bare = model.info.bare_name
    if kept and not fork:
        await sessions.restore(kept.id, bare)
        session = kept
    else:
        session = await sessions.create(app.settings.root, bare, user_id=app.settings.user)
        if kept:
            await messages.copy(kept.id, session.id)
            session = await sessions.adopt(session.id, kept)
    chosen = own or (model.info.name if model_name else None)
    if chosen and session.metadata.get("model") != chosen:
        await sessions.set_metadata(session.id, "model", chosen)
    if problem:
        app.events.emit(Notice(level="warning", text=problem), trace_id=session.id)
    conversation = Conversation(
        session=session,
        model=model,
        window=await Calibrations(app.store).window(model.info),
        toolbox=app.toolbox.along_with([todo_tool(), look_back_tool(app.store, app.settings.root)]),
        events=app.events,
        sessions=sessions,
        messages=messages,
        look=app.surroundings,
        root=str(app.settings.root),
        limits=limits(app.settings),
        price=price,
        memory=app.memory,
        mode=mode,
        principal=app.principal,
        few=ESSENTIAL,
        problem=problem,
    )
    await conversation.load()
    return conversation


async def _opened(
    app: EverContext, own: str | None, otherwise: str | None
) -> tuple[Model, str | None]:
    """The model of a session or another one, and why it is not its own."""
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
