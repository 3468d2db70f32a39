"""The same tools over the Model Context Protocol, by Streamable HTTP.

Clients with a handshake are served, and those of the stateless revision of 2026-07-28.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from evercontext import __version__
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.errors import AuditUnavailable, UnknownTool
from evercontext.events.log import EventLog
from evercontext.server.mcp_results import call_result, tool_definition
from evercontext.server.mcp_session_limit import SessionLimit
from evercontext.server.request_cancellation import DISCONNECT, Disconnect
from evercontext.server.request_guard import NOTE, App, Note, principal_of
from evercontext.server.stdio_tools import INSTRUCTIONS
from evercontext.server.token_check import Addresses
from evercontext.storage.login import logged_in
from evercontext.tools.audit_line import line_of
from evercontext.tools.toolbox import Toolbox

MOST_SESSIONS = 256

_Context = ServerRequestContext[Any, Any]


class McpTools:
    """Shows a toolbox to MCP clients; every call takes the one road."""

    def __init__(
        self,
        toolbox: Toolbox,
        events: EventLog,
        *,
        token_name: str | None = None,
        user: str | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._events = events
        self._principal = Principal(user=user, token=token_name)
        offered = toolbox.offered(Mode.AGENT, "json")
        self._listed = [types.Tool.model_validate(tool_definition(tool)) for tool in offered]

    def server(self) -> Server[Any]:
        """Return a protocol server over the tools."""
        return Server(
            "evercontext",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            get_tool_input_schema=self._schema,
        )

    @asynccontextmanager
    async def http(
        self, addresses: Addresses, largest_body: int, *, stateless: bool = False
    ) -> AsyncIterator[App]:
        """Serve Streamable HTTP while the context is open; yields the ASGI application.

        ``stateless``: no client has a session here, so that any process may answer it.
        """
        manager = StreamableHTTPSessionManager(
            self.server(),
            json_response=True,
            stateless=stateless,
            security_settings=TransportSecuritySettings(
                allowed_hosts=sorted(host.decode() for host in addresses.hosts),
                allowed_origins=sorted(origin.decode() for origin in addresses.origins),
            ),
            max_request_body_size=largest_body,
            max_sessions=MOST_SESSIONS,
        )
        async with manager.run():
            yield SessionLimit(manager.handle_request, MOST_SESSIONS)

    async def _list(
        self, context: _Context, parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._listed)

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        try:
            return self._toolbox.find(name).arguments
        except UnknownTool:
            return None

    async def _call(
        self, context: _Context, parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        note = _note(context)
        trace_id = note.trace_id if note else _given_trace_id(context)
        who = principal_of(note, self._principal)
        caller = Caller(trace_id, Door.MCP, principal=who)
        arguments = parameters.arguments or {}
        working = self._toolbox.call(parameters.name, arguments, caller)
        if (disconnect := _disconnect(context)) and not self._writes(parameters.name):
            working = disconnect.unless_disconnected(working)
        # The task of a client's session may be another's than the one that asks now.
        with logged_in(note.login if note else None):
            result = await working
        line = line_of(parameters.name, arguments, result, caller)
        if note and not note.settled:
            # The HTTP request that brought the call has one line, and this is what it says.
            note.call, note.writes = line, self._writes(parameters.name)
        else:
            result = self._recorded(parameters.name, line, result, trace_id)
        if isinstance(result.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, str(result.error))
        return types.CallToolResult.model_validate(call_result(result, trace_id))

    def _recorded(self, name: str, line: Audit, result: ToolResult, trace_id: str) -> ToolResult:
        try:
            self._events.emit_audited(line, trace_id=trace_id)
        except AuditUnavailable as error:
            # The write is there, but nobody could prove it: it is not acknowledged.
            return ToolResult.failed(error) if result.ok and self._writes(name) else result
        return result

    def _writes(self, name: str) -> bool:
        try:
            return self._toolbox.find(name).writes
        except UnknownTool:
            return False


def _note(context: _Context) -> Note | None:
    """The note of the HTTP request that brought the call, if one did."""
    return context.request.scope.get(NOTE) if context.request is not None else None


def _disconnect(context: _Context) -> Disconnect | None:
    return context.request.scope.get(DISCONNECT) if context.request is not None else None


def _given_trace_id(context: _Context) -> str:
    value = (context.meta or {}).get("x-trace-id")
    try:
        return str(uuid.UUID(str(value)))
    except ValueError:
        return str(uuid.uuid4())
