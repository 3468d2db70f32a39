"""The Agent Client Protocol: the conversation inside an editor (Zed, JetBrains, Neovim, …).

The editor shows what happens and answers for the user; files, rules, sessions and plan mode are
the same as in the terminal.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, helpers, run_agent, schema
from acp.interfaces import Client
from pydantic import ValidationError

from evercontext import __version__
from evercontext.access.permissions import Permissions, StoredRules, open_permissions
from evercontext.access.rules import rules_for
from evercontext.agent import todo
from evercontext.agent.conversation import Conversation
from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.domain.event import Event, Step, StepResult, TextPiece
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Mode
from evercontext.domain.visible_text import exact
from evercontext.errors import EverContextError
from evercontext.server.acp_stdio import AcpStdio
from evercontext.settings import Settings, load
from evercontext.tools.approval_gate import Answer, Gate, Question
from evercontext.tools.consent import consent_of

_LONGEST = 8_000
_MODES = {Mode.AGENT: "Changes files, and asks first", Mode.PLAN: "Reads and plans"}
_STOPS = {Outcome.LIMIT: "max_turn_requests", Outcome.REFUSED: "refusal"}
_KINDS = (("execute", "execute"), ("write", "edit"), ("network", "fetch"), ("read", "read"))
"""What an editor calls a call; one that was refused has no effect and is never called reading."""
_STATES = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}


@dataclass(slots=True)
class _Open:
    """One session that an editor has open."""

    talk: Conversation
    gate: Gate
    stack: AsyncExitStack
    updates: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    work: asyncio.Task[Any] | None = None


class AcpAgent:
    """Answers one editor."""

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self._sessions: dict[str, _Open] = {}
        self._client: Client

    def on_connect(self, conn: Client) -> None:
        """Remember whom to talk to."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        """Say what this agent can do."""
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(load_session=True),
            agent_info=schema.Implementation(name="evercontext", version=__version__),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        """Begin a session in a directory."""
        opened = await self._open(cwd, None)
        return schema.NewSessionResponse(session_id=opened.talk.session.id, modes=_modes(opened))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        """Take a session up again, and show the editor what was said in it."""
        opened = await self._open(cwd, session_id)
        for message in opened.talk.history:
            if message.role == "user":
                said: Any = helpers.update_user_message_text(message.content)
            elif message.role == "assistant" and message.content:
                said = helpers.update_agent_message_text(message.content)
            else:
                continue
            await self._client.session_update(session_id=session_id, update=said)
        return schema.LoadSessionResponse(modes=_modes(opened))

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Switch between plan and agent mode."""
        if mode_id not in set(_MODES):
            raise RequestError.invalid_params({"reason": f"there is no mode {mode_id[:40]}"})
        self._known(session_id).talk.mode = Mode(mode_id)
        return schema.SetSessionModeResponse()

    async def prompt(
        self, prompt: Sequence[Any], session_id: str, **_: Any
    ) -> schema.PromptResponse:
        """Answer one message."""
        opened = self._known(session_id)
        if opened.work and not opened.work.done():
            raise RequestError.invalid_request({"reason": "the last message is being answered"})
        sending = asyncio.create_task(self._send(session_id, opened))
        opened.work = asyncio.ensure_future(opened.talk.turn(_text(prompt), opened.gate))
        try:
            report = await opened.work
        except asyncio.CancelledError:
            return schema.PromptResponse(stop_reason="cancelled")
        except EverContextError as error:
            raise RequestError.internal_error({"reason": str(error)}) from error
        finally:
            opened.updates.put_nowait(None)
            await sending
        if report.error and not report.text:
            said = helpers.update_agent_message_text(f"error: {report.error}")
            await self._client.session_update(session_id=session_id, update=said)
        stop: Any = _STOPS.get(report.outcome, "end_turn")
        return schema.PromptResponse(stop_reason=stop)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the answer that is being given."""
        opened = self._known(session_id)
        if opened.work:
            opened.work.cancel()

    async def close(self) -> None:
        """End every session."""
        for opened in self._sessions.values():
            await opened.talk.end()
            await opened.stack.aclose()

    async def _open(self, cwd: str, session_id: str | None) -> _Open:
        stack = AsyncExitStack()
        if "\0" in cwd:
            raise RequestError.invalid_params({"reason": "cwd holds a NUL: it can be no directory"})
        try:
            settings = _settings(cwd, self._model)
            app = await stack.enter_async_context(EverContext.open(settings))
            talk = await open_conversation(app, resume=session_id)
        except EverContextError as error:
            await stack.aclose()
            raise RequestError.invalid_params({"reason": str(error)}) from error
        stored = StoredRules(app.store, talk.session.project_path)
        permissions = await open_permissions(stored, str(settings.root.resolve()))
        gate = Gate(permissions, _Asking(self._client, talk.session.id, permissions, stored))
        opened = _Open(talk, gate, stack)
        stack.callback(app.events.subscribe(opened.updates.put_nowait))
        self._sessions[talk.session.id] = opened
        return opened

    def _known(self, session_id: str) -> _Open:
        if session_id not in self._sessions:
            raise RequestError.invalid_params({"reason": f"no session {session_id[:60]} is open"})
        return self._sessions[session_id]

    async def _send(self, session_id: str, opened: _Open) -> None:
        while (event := await opened.updates.get()) is not None:
            if update := _update(event):
                await self._client.session_update(session_id=session_id, update=update)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Approvals are the editor's to ask for."""

    client: Client
    session_id: str
    permissions: Permissions
    stored: StoredRules

    async def __call__(self, question: Question) -> Answer:
        tool, arguments = question.tool, question.arguments
        reason = self.permissions.floor(tool, arguments)
        always = () if reason else rules_for(tool, arguments)
        asking = self.client.request_permission(
            session_id=self.session_id,
            tool_call=schema.ToolCallUpdate(
                tool_call_id=f"ask-{question.caller.trace_id}-{tool.name}",
                title=tool.name if not reason else f"{tool.name}: {reason}",
                content=[
                    *(
                        helpers.tool_diff_content(change.path, change.after or "", change.before)
                        for change in question.changes
                    ),
                    helpers.tool_content(helpers.text_block(_consent_text(question, reason))),
                ],
                raw_input=dict(arguments),
            ),
            options=_options(", ".join(rule.text for rule in always)),
        )
        try:
            answer = await asking
        except (RequestError, ValidationError):
            return Answer(False, "the editor gave no answer that can be read")
        chosen = getattr(answer.outcome, "option_id", "no")
        if chosen == "always":
            for rule in always:
                await self.stored.add(rule)
            self.permissions.stored = await self.stored.all()
        return Answer(chosen in ("once", "always"), "you, in the editor")


def _consent_text(question: Question, reason: str | None) -> str:
    """All that is asked about, in one block that an editor shows as it is.

    The editor draws the diffs itself; they are repeated where they hold something hidden.
    """
    texts = [text for change in question.changes for text in (change.before, change.after) if text]
    hidden = any(exact(text) != text for text in texts)
    shown = consent_of(question, reason).lines()
    lines = "\n".join(line.text for line in shown if hidden or line.kind != "diff")
    # The fence is longer than any run of backticks inside.
    longest = max((len(run) for run in re.findall("`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{lines}\n{fence}"


def _options(always: str) -> list[schema.PermissionOption]:
    found = [schema.PermissionOption(option_id="once", name="Allow", kind="allow_once")]
    if always:
        name = f"Always allow {always}"
        found.append(schema.PermissionOption(option_id="always", name=name, kind="allow_always"))
    found.append(schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"))
    return found


def _update(event: Event) -> Any:
    """One event as the editor is told of it, or ``None``."""
    match event.body:
        case TextPiece(text=text, thought=True):
            return helpers.update_agent_thought_text(text)
        case TextPiece(text=text):
            return helpers.update_agent_message_text(text)
        case Step(tool=todo.NAME, arguments=arguments):
            return helpers.update_plan(
                helpers.plan_entry(one["text"], status=_STATES[one["status"]])  # type: ignore[arg-type]
                for one in arguments["todos"]
            )
        case Step() as step:
            kind: Any = next((name for effect, name in _KINDS if effect in step.effects), "other")
            about = step.arguments.get("path") or step.arguments.get("command") or ""
            return helpers.start_tool_call(
                event.id,
                f"{step.tool} {about}".strip(),
                kind=kind,
                status="in_progress",
                raw_input=dict(step.arguments),
            )
        case StepResult(tool=tool) as result if tool != todo.NAME:
            content = helpers.tool_content(helpers.text_block(result.text[:_LONGEST]))
            status: Any = "completed" if result.ok else "failed"
            return helpers.update_tool_call(event.parent or "", status=status, content=[content])
    return None


def _modes(opened: _Open) -> schema.SessionModeState:
    available = [
        schema.SessionMode(id=mode.value, name=mode.value, description=meaning)
        for mode, meaning in _MODES.items()
    ]
    mode = opened.talk.mode.value
    return schema.SessionModeState(current_mode_id=mode, available_modes=available)


def _text(prompt: Sequence[Any]) -> str:
    """What the user wrote, with the files the editor put beside it."""
    parts = []
    for block in prompt:
        if text := getattr(block, "text", None):
            parts.append(text)
        elif resource := getattr(block, "resource", None):
            parts.append(f"[{resource.uri}]\n{getattr(resource, 'text', '')}")
        elif uri := getattr(block, "uri", None):
            parts.append(f"[{uri}]")
    return "\n\n".join(parts)


def _settings(cwd: str, model: str | None) -> Settings:
    return load({"root": cwd, "model_name": model})


async def serve_acp(model: str | None = None) -> None:
    """Answer an editor on stdin and stdout until it goes."""
    agent = AcpAgent(model)
    try:
        await run_agent(agent, await AcpStdio.open())  # type: ignore[arg-type]
    finally:
        await agent.close()
