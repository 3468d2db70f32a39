"""Serve the Agent Client Protocol: a conversation inside an editor (Zed, JetBrains, Neovim, …).

The editor shows what happens and answers for the user; files, rules, sessions and plan mode are
the same as in the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, helpers, run_agent, schema
from acp.interfaces import Client
from pydantic import ValidationError

from evercontext import __version__
from evercontext.access.approval_rules import rules_for
from evercontext.access.permissions import Permissions, StoredRules, open_permissions
from evercontext.agent.conversation import Conversation
from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.domain.event import Event
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Mode
from evercontext.errors import EverContextError
from evercontext.server.acp_messages import (
    MODES,
    ToolCallUpdates,
    consent_text,
    mode_state,
    permission_options,
    prompt_text,
    server_configs,
    title_of,
)
from evercontext.server.acp_stdio import AcpStdio
from evercontext.settings import load
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate

_STOPS = {Outcome.LIMIT: "max_turn_requests", Outcome.REFUSED: "refusal"}


@dataclass(slots=True)
class _Open:
    """One session that an editor has open."""

    talk: Conversation
    gate: Gate
    stack: AsyncExitStack
    calls: ToolCallUpdates
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
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
            ),
            agent_info=schema.Implementation(name="evercontext", version=__version__),
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.NewSessionResponse:
        """Begin a session in a directory, with the MCP servers that the editor names."""
        opened = await self._open(cwd, None, mcp_servers)
        id, modes = opened.talk.session.id, mode_state(opened.talk.mode)
        return schema.NewSessionResponse(session_id=id, modes=modes)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """Take a session up again, and show the editor what was said in it."""
        await self._close(session_id)
        opened = await self._open(cwd, session_id, mcp_servers)
        for message in opened.talk.history:
            if message.role == "user":
                update: Any = helpers.update_user_message_text(message.content)
            elif message.role == "assistant" and message.content:
                update = helpers.update_agent_message_text(message.content)
            else:
                continue
            await self._client.session_update(session_id=session_id, update=update)
        return schema.LoadSessionResponse(modes=mode_state(opened.talk.mode))

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Switch between plan and agent mode; the session keeps it."""
        if mode_id not in set(MODES):
            raise RequestError.invalid_params({"reason": f"there is no mode {mode_id[:40]}"})
        talk = self._known(session_id).talk
        talk.mode = Mode(mode_id)
        await talk.sessions.set_metadata(session_id, "mode", mode_id)
        return schema.SetSessionModeResponse()

    async def prompt(
        self, prompt: Sequence[Any], session_id: str, **_: Any
    ) -> schema.PromptResponse:
        """Answer one message."""
        opened = self._known(session_id)
        if opened.work and not opened.work.done():
            raise RequestError.invalid_request({"reason": "the last message is being answered"})
        sending = asyncio.create_task(self._send(session_id, opened))
        opened.work = asyncio.ensure_future(opened.talk.turn(prompt_text(prompt), opened.gate))
        try:
            report = await opened.work
        except asyncio.CancelledError:
            return schema.PromptResponse(stop_reason="cancelled")
        except EverContextError as error:
            raise RequestError.internal_error({"reason": str(error)}) from error
        finally:
            opened.updates.put_nowait(None)
            await sending
            opened.calls.forget_questions()
        if report.error and not report.text:
            update = helpers.update_agent_message_text(f"error: {report.error}")
            await self._client.session_update(session_id=session_id, update=update)
        stop: Any = _STOPS.get(report.outcome, "end_turn")
        return schema.PromptResponse(stop_reason=stop)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the answer that is being given."""
        opened = self._known(session_id)
        if opened.work:
            opened.work.cancel()

    async def close(self) -> None:
        """End every session."""
        for session_id in list(self._sessions):
            await self._close(session_id)

    async def _close(self, session_id: str) -> None:
        opened = self._sessions.pop(session_id, None)
        if opened is None:
            return
        if opened.work:
            opened.work.cancel()
            await asyncio.gather(opened.work, return_exceptions=True)
        await opened.talk.end()
        await opened.stack.aclose()

    async def _open(
        self, cwd: str, session_id: str | None, mcp_servers: Sequence[Any] | None
    ) -> _Open:
        stack = AsyncExitStack()
        if "\0" in cwd:
            raise RequestError.invalid_params({"reason": "cwd holds a NUL: it can be no directory"})
        try:
            settings = load({"root": cwd, "model_name": self._model})
            servers = server_configs(mcp_servers)
            app = await stack.enter_async_context(EverContext.open(settings, servers))
            # A session that has a model goes on with it; a new one keeps the one it began with.
            chosen = None if session_id else self._model
            talk = await open_conversation(
                app, resume=session_id, model_name=chosen, otherwise=self._model
            )
        except EverContextError as error:
            await stack.aclose()
            raise RequestError.invalid_params({"reason": str(error)}) from error
        talk.mode = _stored_mode(talk)
        stored = StoredRules(app.store, talk.session.project_path)
        root = settings.root.resolve()
        permissions = await open_permissions(stored, settings)
        calls, updates = ToolCallUpdates(root), asyncio.Queue[Any]()
        asking = _Asking(self._client, talk.session.id, permissions, stored, calls, updates)
        opened = _Open(talk, Gate(permissions, asking), stack, calls, updates)
        stack.callback(app.events.subscribe(opened.updates.put_nowait))
        self._sessions[talk.session.id] = opened
        return opened

    def _known(self, session_id: str) -> _Open:
        if session_id not in self._sessions:
            raise RequestError.invalid_params({"reason": f"no session {session_id[:60]} is open"})
        return self._sessions[session_id]

    async def _send(self, session_id: str, opened: _Open) -> None:
        while True:
            item = await opened.updates.get()
            try:
                if item is None:
                    return
                update = opened.calls.update(item) if isinstance(item, Event) else item
                if update:
                    await self._client.session_update(session_id=session_id, update=update)
            finally:
                opened.updates.task_done()


@dataclass(frozen=True, slots=True)
class _Asking:
    """Approvals are the editor's to ask for."""

    client: Client
    session_id: str
    permissions: Permissions
    stored: StoredRules
    calls: ToolCallUpdates
    updates: asyncio.Queue[Any]

    async def __call__(self, question: ApprovalQuestion) -> ApprovalAnswer:
        tool, arguments = question.tool, question.arguments
        reason = self.permissions.floor(tool, arguments)
        always = () if reason else rules_for(tool, arguments)
        # The editor knows the call, and all that came before it, when it is asked about.
        call = self.calls.announce(question)
        self.updates.put_nowait(call)
        await self.updates.join()
        asking = self.client.request_permission(
            session_id=self.session_id,
            tool_call=schema.ToolCallUpdate(
                tool_call_id=call.tool_call_id,
                title=title_of(tool, reason),
                kind=call.kind,
                status="pending",
                locations=call.locations,
                content=[
                    *self.calls.diffs(question),
                    helpers.tool_content(helpers.text_block(consent_text(question, reason))),
                ],
                raw_input=dict(arguments),
            ),
            options=permission_options(", ".join(rule.text for rule in always)),
        )
        try:
            answer = await asking
        except (RequestError, ValidationError):
            return ApprovalAnswer(False, "the editor gave no answer that can be read")
        chosen = getattr(answer.outcome, "option_id", "no")
        if chosen == "always":
            for rule in always:
                await self.stored.add(rule)
            self.permissions.stored = await self.stored.all()
        return ApprovalAnswer(chosen in ("once", "always"), "you, in the editor")


def _stored_mode(talk: Conversation) -> Mode:
    """Return the mode that a session was left in."""
    stored = talk.session.metadata.get("mode")
    return Mode(stored) if stored in set(MODES) else talk.mode


async def serve_acp(model: str | None = None) -> None:
    """Answer an editor on stdin and stdout until it goes."""
    agent = AcpAgent(model)
    try:
        await run_agent(agent, await AcpStdio.open())  # type: ignore[arg-type]
    finally:
        await agent.close()
