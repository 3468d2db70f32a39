"""Serve the tool router over stdin and stdout to the client that started it.

It answers as it does over HTTP. There is no token: whoever starts the process has the rights of
its user, and sees the servers of the project that is bound to the directory.
"""

from __future__ import annotations

import asyncio
from typing import Any

from evercontext.app import EverContext
from evercontext.domain.caller_scope import ClientChannel, Hear, Scope
from evercontext.domain.event import Audit
from evercontext.errors import AuditUnavailable
from evercontext.events.log import EventLog
from evercontext.mcp.messages import RpcRequest, meta_of
from evercontext.mcp.revisions import check_envelope, is_stateless
from evercontext.mcp.server.client_sessions import ClientState
from evercontext.mcp.server.dispatcher import Answer, respond
from evercontext.mcp.server.stdio import StdioServer
from evercontext.server.request_guard import take_trace_id
from evercontext.server.router.authentication import RouterClient
from evercontext.server.router.list_changes import ListChanges
from evercontext.server.router.mcp_methods import RouterOffer, shown_notification


class StdioRouter:
    """Offers the router's tools to the client at stdin and stdout."""

    def __init__(self, app: EverContext) -> None:
        self._app = app
        self._offer = RouterOffer(app)
        self._server = StdioServer(self._respond, self._notified)
        self._changes = ListChanges(self._offer, self._scope, self._announce)
        self._watching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._offer.listen(self._server_notified)

    async def serve(self) -> None:
        """Serve until the client closes the pipe."""
        try:
            await self._server.serve()
        finally:
            self._offer.unlisten(self._server_notified)
            tasks = [task for task in (self._watching, self._starting) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _scope(self) -> Scope:
        return await self._app.catalog.default_scope()

    def _server_notified(self, server: str, method: str, params: dict[str, Any]) -> None:
        """Pass on what a server says outside of a call: this client is the only one."""
        if method.endswith("/list_changed"):
            self._changes.wake()
        elif (shown := shown_notification(server, method, params, self._server.state)) is not None:
            self._server.notify(method, shown)

    def _announce(self, method: str) -> None:
        self._server.notify(method, {})

    def _notified(self, notification: RpcRequest) -> None:
        """Watch the lists for changes once the client is ready to hear of them."""
        if notification.method == "notifications/initialized" and self._watching is None:
            self._watching = asyncio.create_task(self._changes.watch())

    def _initialized(self, request: RpcRequest) -> None:
        """Learn what the client can do, and start the servers it will ask for."""
        capabilities = request.params.get("capabilities")
        self._server.state.capabilities = capabilities if isinstance(capabilities, dict) else {}
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_servers())

    async def _start_servers(self) -> None:
        await self._offer.start_servers(await self._scope())

    async def _respond(self, request: RpcRequest) -> bytes:
        stateless = is_stateless(request)
        return await respond(request, self._answer(request, stateless), stateless=stateless)

    async def _answer(self, request: RpcRequest, stateless: bool) -> Answer:
        if stateless:
            check_envelope(request, None)
        if (handshake := self._offer.info.handshake_result(request)) is not None:
            if request.method == "initialize":
                self._initialized(request)
            return handshake
        client = RouterClient(None, await self._scope(), user=self._app.settings.user)
        context = _StdioContext(request, client, self._app.events, self._server)
        answer = await self._offer.answer(request, context)
        await self._changes.listed(request.method)
        return answer


class _StdioContext:
    """One request: its revision, its trace, and where its progress and its audit line go."""

    def __init__(
        self, request: RpcRequest, client: RouterClient, events: EventLog, server: StdioServer
    ) -> None:
        self._request, self._events, self._server = request, events, server
        self.client = client
        trace_id = meta_of(request.params).get("x-trace-id")
        headers = [(b"x-trace-id", str(trace_id).encode("latin-1", "replace"))] if trace_id else []
        self.trace_id = take_trace_id(headers).trace_id
        self.stateless = is_stateless(request)
        self.headers = None

    @property
    def state(self) -> ClientState:
        """What is remembered of the client."""
        return self._server.state

    def channel(self) -> ClientChannel | None:
        """Return the way to the client: the pipe itself."""
        return self._server

    def progress_to(self, token: str | int) -> Hear | None:
        """Return what passes progress on to the client."""
        return self._server.progress_to(token)

    def record(self, line: Audit) -> None:
        """Write the audit line; a call without its line is not acknowledged."""
        try:
            self._events.emit_audited(line, trace_id=self.trace_id)
        except AuditUnavailable:
            if self._request.method == "tools/call":
                raise
