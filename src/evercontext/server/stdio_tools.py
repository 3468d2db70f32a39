"""Our tools for the one client that started this process, over stdin and stdout.

The handshake is answered at once; the project is opened while the client goes on. A client that had
to wait for it would begin its first turn without our tools.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any

from evercontext.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    RpcError,
    RpcRequest,
    meta_of,
)
from evercontext.mcp.revisions import ServerInfo, check_envelope, is_stateless
from evercontext.mcp.server.dispatcher import Answer, respond
from evercontext.mcp.server.stdio import StdioServer

if TYPE_CHECKING:
    from evercontext.app import EverContext
    from evercontext.domain.tool import Caller, ToolResult
    from evercontext.tools.toolbox import Toolbox

    OpenApp = Callable[[], AbstractAsyncContextManager[EverContext]]

_CAPABILITIES = {"tools": {"listChanged": False}}
INSTRUCTIONS = (
    "Tools of one project: its files, inside its root and its policy. Paths are relative to the "
    "root. An error names its code and, where there is one, the fix."
)
INFO = ServerInfo("evercontext", _CAPABILITIES, INSTRUCTIONS, _CAPABILITIES)
_AFTER_HANDSHAKE = 0.02
"""Seconds in which the answer to the handshake leaves, before the project is opened."""


class StdioTools:
    """Answers the client; every call takes the one road."""

    def __init__(self, open_app: OpenApp, *, allow_commands: bool) -> None:
        self._open_app, self._allow_commands = open_app, allow_commands
        self._server = StdioServer(self._respond, lambda _: None)
        self._initialized = False
        self._needed, self._closing = asyncio.Event(), asyncio.Event()
        self._tools: asyncio.Future[tuple[EverContext, Toolbox]] = (
            asyncio.get_running_loop().create_future()
        )

    async def serve(self) -> None:
        """Serve until the client closes the pipe; then raise what kept the project from opening.

        Until then every call is answered with that: a client shows an error of a call, and of a
        process that ended only that it did.
        """
        opening = asyncio.create_task(self._open())
        serving = asyncio.create_task(self._server.serve())
        try:
            await serving
            # Also for a client that asked for nothing: opening the project puts away what a
            # killed command left there.
            self._needed.set()
            await asyncio.wait((opening, self._tools), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._closing.set()
            self._needed.set()
            if not serving.done():
                serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            await opening

    async def _open(self) -> None:
        """Open the project once it is needed, and hold it open as long as the client is there."""
        await self._needed.wait()
        if self._closing.is_set():
            return
        from evercontext.server.exposed_tools import exposed_toolbox

        try:
            async with self._open_app() as app:
                box = exposed_toolbox(app.toolbox, allow_commands=self._allow_commands)
                self._tools.set_result((app, box))
                await self._closing.wait()
        except Exception as problem:
            if not self._tools.done():
                self._tools.set_exception(problem)
                # Somebody may wait for it, or nobody.
                self._tools.exception()
            raise

    async def _respond(self, request: RpcRequest) -> bytes:
        stateless = is_stateless(request)
        return await respond(request, self._answer(request, stateless), stateless=stateless)

    async def _answer(self, request: RpcRequest, stateless: bool) -> Answer:
        if stateless:
            check_envelope(request, None)
        if (handshake := INFO.handshake_result(request)) is not None:
            self._initialized = self._initialized or request.method == "initialize"
            asyncio.get_running_loop().call_later(_AFTER_HANDSHAKE, self._needed.set)
            return handshake
        if not stateless and not self._initialized:
            raise RpcError(NOT_INITIALIZED, "initialize first")
        self._needed.set()
        app, box = await asyncio.shield(self._tools)
        if request.method == "tools/list":
            return {"tools": _definitions(box)}
        if request.method == "tools/call":
            return await self._call(request, app, box)
        raise RpcError(METHOD_NOT_FOUND, f"there is no method {request.method[:80]}")

    async def _call(self, request: RpcRequest, app: EverContext, box: Toolbox) -> Answer:
        from evercontext.domain.principal import Principal
        from evercontext.domain.tool import Caller, Door
        from evercontext.errors import UnknownTool
        from evercontext.server.mcp_results import call_result

        name, arguments = request.params.get("name"), request.params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "name is a text and arguments an object")
        caller = Caller(_trace_id(request), Door.MCP, principal=Principal(user=app.settings.user))
        result = await box.call(name, arguments, caller)
        result = _recorded(app, box, name, arguments, result, caller)
        if isinstance(result.error, UnknownTool):
            raise RpcError(INVALID_PARAMS, str(result.error))
        return call_result(result, caller.trace_id)


def _definitions(box: Toolbox) -> list[dict[str, Any]]:
    from evercontext.domain.tool import Mode
    from evercontext.server.mcp_results import tool_definition

    return [tool_definition(tool) for tool in box.offered(Mode.AGENT, "json")]


def _recorded(
    app: EverContext,
    box: Toolbox,
    name: str,
    arguments: dict[str, Any],
    result: ToolResult,
    caller: Caller,
) -> ToolResult:
    """Write the call's audit line; a write that nobody could prove is not acknowledged."""
    from evercontext.domain.tool import ToolResult
    from evercontext.errors import AuditUnavailable, UnknownTool
    from evercontext.tools.audit_line import line_of

    try:
        app.events.emit_audited(line_of(name, arguments, result, caller), trace_id=caller.trace_id)
    except AuditUnavailable as error:
        with suppress(UnknownTool):
            if result.ok and box.find(name).writes:
                return ToolResult.failed(error)
    return result


def _trace_id(request: RpcRequest) -> str:
    try:
        return str(uuid.UUID(str(meta_of(request.params).get("x-trace-id"))))
    except ValueError:
        return str(uuid.uuid4())
