"""The tool router for the one client that started this process, over stdin and stdout.

It answers as it does over HTTP. There is no token: whoever starts the process has the rights of
its user, and sees the servers of the project that is bound to the directory.
"""

from __future__ import annotations

import asyncio

from evercontext.app import EverContext
from evercontext.domain.caller_scope import Hear, Scope
from evercontext.domain.event import Audit
from evercontext.errors import AuditUnavailable
from evercontext.events.log import EventLog
from evercontext.mcp.messages import Request, meta_of
from evercontext.mcp.revisions import check_envelope, is_stateless
from evercontext.mcp.server.dispatcher import Answer, respond
from evercontext.mcp.server.stdio import StdioServer
from evercontext.server.asgi import take_trace_id
from evercontext.server.router.authentication import RouterClient
from evercontext.server.router.list_changes import ListChanges
from evercontext.server.router.offer import RouterOffer


class StdioRouter:
    """Offers the router's tools to the client at stdin and stdout."""

    def __init__(self, app: EverContext) -> None:
        self._app = app
        self._offer = RouterOffer(app, announces_changes=True)
        self._server = StdioServer(self._respond, self._notified)
        self._changes = ListChanges(self._offer, self._scope, self._announce)
        self._watching: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serve until the client closes the pipe."""
        try:
            await self._server.serve()
        finally:
            if self._watching is not None:
                self._watching.cancel()
                await asyncio.gather(self._watching, return_exceptions=True)

    async def _scope(self) -> Scope:
        return await self._app.catalog.default_scope()

    def _announce(self, method: str) -> None:
        self._server.notify(method, {})

    def _notified(self, notification: Request) -> None:
        """Watch the lists for changes once the client is ready to hear of them."""
        if notification.method == "notifications/initialized" and self._watching is None:
            self._watching = asyncio.create_task(self._changes.watch())

    async def _respond(self, request: Request) -> bytes:
        stateless = is_stateless(request)
        return await respond(request, self._answer(request, stateless), stateless=stateless)

    async def _answer(self, request: Request, stateless: bool) -> Answer:
        if stateless:
            check_envelope(request, None)
        if (handshake := self._offer.info.handshake_result(request)) is not None:
            return handshake
        client = RouterClient(None, await self._scope(), user=self._app.settings.user)
        context = _StdioContext(request, client, self._app.events, self._server)
        answer = await self._offer.answer(request, context)
        await self._changes.listed(request.method)
        return answer


class _StdioContext:
    """One request: its revision, its trace, and where its progress and its audit line go."""

    def __init__(
        self, request: Request, client: RouterClient, events: EventLog, server: StdioServer
    ) -> None:
        self._request, self._events, self._server = request, events, server
        self.client = client
        trace_id = meta_of(request.params).get("x-trace-id")
        headers = [(b"x-trace-id", str(trace_id).encode("latin-1", "replace"))] if trace_id else []
        self.trace_id = take_trace_id(headers).trace_id
        self.stateless = is_stateless(request)

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
