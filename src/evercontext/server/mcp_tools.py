"""The same tools over the Model Context Protocol, by stdio and Streamable HTTP.

Both eras are served: clients that shake hands, and the stateless revision of 2026-07-28.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from evercontext import __version__
from evercontext.domain.error_codes import http_status
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Effect, Mode, Tool, ToolResult
from evercontext.errors import AuditUnavailable, UnknownTool
from evercontext.events.log import EventLog
from evercontext.process.stdin import open_stdin
from evercontext.server.asgi import NOTE, App, Note
from evercontext.server.auth import Addresses
from evercontext.server.disconnect import DISCONNECT, Disconnect
from evercontext.server.responses import encode
from evercontext.tools.audit_line import line_of
from evercontext.tools.toolbox import Toolbox

INSTRUCTIONS = (
    "Tools of one project: its files, inside its root and its policy. Paths are relative to the "
    "root. An error names its code and, where there is one, the fix."
)
MOST_SESSIONS = 256
PAUSE = 0.1
"""Seconds for a request to reach its handler, or an answer to leave."""

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
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._listed = [describe(tool) for tool in toolbox.offered(Mode.AGENT, "json")]

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

    async def stdio(self) -> None:
        """Serve the client that started this process, until it closes the pipe."""
        server = self.server()
        async with stdio_server(stdin=await self._stdin_lines()) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def _stdin_lines(self) -> Any:
        """Lines of stdin that can be cancelled; ``None`` for a plain file, which never waits."""
        reader = await open_stdin()
        if reader is None:
            return None

        async def lines() -> AsyncIterator[str]:
            async for line in reader:
                yield line.decode("utf-8", "replace")
            # The end of the input ends the session, and with it every call that still runs:
            # a script that pipes its requests in wants their answers first.
            await asyncio.sleep(PAUSE)
            await self._idle.wait()
            await asyncio.sleep(PAUSE)

        return lines()

    @asynccontextmanager
    async def http(self, addresses: Addresses, largest_body: int) -> AsyncIterator[App]:
        """Serve Streamable HTTP while the context is open; yields the ASGI application."""
        manager = StreamableHTTPSessionManager(
            self.server(),
            json_response=True,
            security_settings=TransportSecuritySettings(
                allowed_hosts=sorted(host.decode() for host in addresses.hosts),
                allowed_origins=sorted(origin.decode() for origin in addresses.origins),
            ),
            max_request_body_size=largest_body,
            max_sessions=MOST_SESSIONS,
        )
        async with manager.run():
            yield manager.handle_request

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
        who = replace(self._principal, user=note.user) if note and note.user else self._principal
        caller = Caller(trace_id, Door.MCP, principal=who)
        arguments = parameters.arguments or {}
        self._running += 1
        self._idle.clear()
        try:
            working = self._toolbox.call(parameters.name, arguments, caller)
            if (disconnect := _disconnect(context)) and not self._writes(parameters.name):
                working = disconnect.unless_disconnected(working)
            result = await working
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
        line = line_of(
            parameters.name, arguments, result, replace(caller, principal=self._principal)
        )
        if note and not note.settled:
            # The HTTP request that brought the call has one line, and this is what it says.
            note.call, note.writes = line, self._writes(parameters.name)
        else:
            result = self._recorded(parameters.name, line, result, trace_id)
        return as_mcp(result, trace_id)

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


def describe(tool: Tool) -> types.Tool:
    """Return a tool as MCP shows it; vendors behind the clients refuse dots in names."""
    writes = tool.writes
    return types.Tool(
        name=tool.name.replace(".", "__"),
        title=tool.name,
        description=tool.description,
        input_schema=dict(tool.arguments),
        annotations=types.ToolAnnotations(
            read_only_hint=not writes,
            destructive_hint=writes,
            idempotent_hint=not writes,
            open_world_hint=bool(tool.effects & Effect.NETWORK),
        ),
    )


def as_mcp(result: ToolResult, trace_id: str) -> types.CallToolResult:
    """Return a result as MCP content; an error carries the code that REST would give."""
    if result.error is None:
        data = result.data if isinstance(result.data, dict) else {"result": result.data}
        text = result.text or encode(data).decode()
        return types.CallToolResult(content=[_text(text)], structured_content=data)
    problem = {
        "error": {"code": result.error.code, "message": str(result.error)},
        "status": http_status(result.error),
        "trace_id": trace_id,
    }
    text = f"{result.error.code}: {result.error}"
    return types.CallToolResult(content=[_text(text)], structured_content=problem, is_error=True)


def _text(text: str) -> types.TextContent:
    # JSON-RPC is UTF-8: a lone surrogate could not be sent at all.
    return types.TextContent(text=text.encode("utf-8", "backslashreplace").decode())


def _note(context: _Context) -> Note | None:
    """The note of the HTTP request that brought the call, if one did."""
    return context.request.scope.get(NOTE) if context.request is not None else None


def _disconnect(context: _Context) -> Disconnect | None:
    return context.request.scope.get(DISCONNECT) if context.request is not None else None


def _given_trace_id(context: _Context) -> str:
    given = (context.meta or {}).get("x-trace-id")
    try:
        return str(uuid.UUID(str(given)))
    except ValueError:
        return str(uuid.uuid4())
