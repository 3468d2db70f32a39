"""Listen on one address, in one event loop, and end cleanly."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.middleware.errors import ServerErrorMiddleware

from evercontext.access.console_links import Consoles, new_name
from evercontext.app import EverContext
from evercontext.domain.event import Audit
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Door
from evercontext.errors import ConfigError, StoreProblem
from evercontext.events.log import EventLog
from evercontext.process.listening_ports import announced
from evercontext.process.shutdown import PATIENCE, end_within
from evercontext.server.console.application import (
    PREFIX,
    ConsoleApplication,
    is_quiet,
    open_console,
)
from evercontext.server.exposed_tools import exposed_toolbox
from evercontext.server.http_connection import IncomingConnection
from evercontext.server.kpi_metrics import LogMetrics
from evercontext.server.lazy_app import LazyApp
from evercontext.server.login_check import LoginCheck
from evercontext.server.request_cancellation import Disconnect
from evercontext.server.request_guard import (
    ROUTE,
    AccessGuard,
    App,
    Audited,
    Bounded,
    Receive,
    Scope,
    Send,
    never,
)
from evercontext.server.request_metrics import Metrics
from evercontext.server.rest import answer_crash, build_gateway
from evercontext.server.token_check import Addresses, Token, require_token_off_loopback
from evercontext.settings import Settings
from evercontext.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from evercontext.server.mcp_tools import McpTools

STOP_SECONDS = 1
"""For requests that are being served; those that only read are given up before."""
_READING_SECONDS = 0.5
MOST_CONNECTIONS = 512
_OTHER_DESCRIPTORS = 64
"""For databases, logs, indexes and pipes; a request opens up to two files."""
_QUIET_SECONDS = 60
UNREAD_SECONDS = 30
"""How long a client may leave an answer unread before its connection is cut."""
_SIGNALS = {signal.SIGINT: Outcome.CANCELLED, signal.SIGTERM: Outcome.TERMINATED}


@dataclass(frozen=True, slots=True)
class Listener:
    """An application, and the socket it answers on."""

    app: App
    socket: socket.socket
    protocol: type[IncomingConnection]
    on_stop: Callable[[], None] = lambda: None
    """Told when the server begins to end, so that answers without an end find theirs."""

    has_console: bool = False

    @property
    def url(self) -> str:
        """The address to give to clients."""
        return address_of(self.socket)


def address_of(bound: socket.socket) -> str:
    """The address of a socket as a client writes it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def open_gateway(
    settings: Settings, toolbox: Toolbox, events: EventLog, project: EverContext | None = None
) -> AsyncIterator[Listener]:
    """Bind the gateway's address and make what answers there: REST, ``/mcp``, ``/docs``.

    With a ``project``, and on loopback alone, the web console too.
    """
    logins = LoginCheck(project.store, project.memory.here) if project else None
    needs_login = logins is not None and logins.is_needed
    if not needs_login:
        require_token_off_loopback(settings.host, settings.token)
    async with AsyncExitStack() as stack:
        bound = stack.enter_context(closing(bind(settings.host, settings.port)))
        stack.enter_context(announced(settings.home, [bound.getsockname()[1]]))
        tools = exposed_toolbox(toolbox, allow_commands=settings.allow_commands)
        limit = body_limit(settings.max_bytes)
        port = bound.getsockname()[1]
        # A console is one person's: without a login of its own the process is nobody's.
        is_personal = project is not None and not (needs_login and settings.user is None)
        console_host = (
            await _console_host(bound, project, settings.port) if project and is_personal else None
        )
        names = (*settings.allowed_hosts, *([console_host] if console_host else []))
        addresses = Addresses.of(settings.host, port, names)
        token = Token.of(settings.token) if settings.token else None
        token_name = "EC_TOKEN" if token else None
        metrics = Metrics(LogMetrics(settings.traces).text)
        gateway = build_gateway(tools, metrics, token_name=token_name)
        who = {"token_name": token_name, "user": settings.user}
        mcp = LazyApp(partial(_open_mcp, tools, events, who, addresses, limit, needs_login))
        stack.push_async_callback(mcp.close)
        console: ConsoleApplication | None = None
        if project and console_host:
            opening = open_console(project, f"http://{console_host}")
            console = await stack.enter_async_context(opening)
        pages = _below(PREFIX, console, gateway.pages) if console else gateway.pages
        routes = _by_path({**gateway.tools, "/mcp": mcp}, pages)
        bounded = Bounded(ServerErrorMiddleware(routes, handler=answer_crash), limit)
        below = (PREFIX,) if console else ()
        guarded = AccessGuard(bounded, addresses, token, open_below=below, logins=logins)
        app = Audited(guarded, events, metrics, is_quiet if console else never)
        stop = console.feed.stop if console else lambda: None
        protocol = connection_class(events, token=token is not None or needs_login)
        yield Listener(app, bound, protocol, stop, console is not None)


async def _console_host(bound: socket.socket, project: EverContext, port: int) -> str | None:
    """The name and port of this console alone; ``None`` where there can be no console.

    Its cookie goes over plain HTTP, which is good enough inside one machine only. Browsers know
    that every name below ``localhost`` is this machine. Where the port was chosen, the name is the
    same the next time: an open page finds the server again.
    """
    host, taken = bound.getsockname()[:2]
    if host not in ("127.0.0.1", "::1"):
        return None
    name = new_name()
    if port:
        with suppress(StoreProblem):
            name = await Consoles(project.store).name(f"{socket.gethostname()}:{host}:{port}")
    return name if taken == 80 else f"{name}:{taken}"


async def _open_mcp(
    tools: Toolbox,
    events: EventLog,
    who: dict[str, str | None],
    addresses: Addresses,
    limit: int,
    stateless: bool,
) -> AbstractAsyncContextManager[App]:
    module = await asyncio.to_thread(import_module, "evercontext.server.mcp_tools")
    door: McpTools = module.McpTools(tools, events, **who)
    return door.http(addresses, limit, stateless=stateless)


def body_limit(max_bytes: int) -> int:
    """Return the largest request body: every byte of a file may be written as ``\\u00xx``."""
    return 6 * max_bytes + 65_536


def bind(host: str, port: int) -> socket.socket:
    """Take the address, or say who else may have it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's delay only where the protocol is spelled out: 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Its connections inherit it; the kernel cuts those whose client never reads.
            milliseconds = UNREAD_SECONDS * 1000
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        bound.bind((host, port))
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            fix = "Stop the other server, or choose a port with EC_PORT"
            raise ConfigError(f"port {port} on {host} is in use", fix=fix) from None
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror or error})", fix="Check EC_HOST"
        ) from None
    return bound


async def serve(
    listeners: Sequence[Listener], on_ready: Callable[[], None] = lambda: None
) -> Outcome:
    """Answer until a signal says stop; return how a shell should hear of it."""
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    most = most_connections()
    asyncio.get_running_loop().set_exception_handler(_Quiet())
    servers = [_server(listener, most) for listener in listeners]
    outcome, stopped = Outcome.DONE, asyncio.Event()

    def stop(number: signal.Signals) -> None:
        nonlocal outcome
        outcome = _SIGNALS[number]
        end_within(PATIENCE, int(outcome))
        asyncio.get_running_loop().call_later(_READING_SECONDS, Disconnect.end_all)
        stopped.set()
        for listener in listeners:
            listener.on_stop()
        for server in servers:
            server.should_exit = True

    async with asyncio.TaskGroup() as group:
        for server, listener in zip(servers, listeners, strict=True):
            group.create_task(server.serve([listener.socket]))
        with _signals(stop):
            await asyncio.gather(*(server.listening.wait() for server in servers))
            on_ready()
            # Servers that are not uvicorn's end with the block that opened them.
            ends = [server.finished for server in servers] or [stopped]
            await asyncio.gather(*(end.wait() for end in ends))
    return outcome


def most_connections() -> int:
    """Raise the soft limit of descriptors as far as one may, and return what it has room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * (3 * MOST_CONNECTIONS + _OTHER_DESCRIPTORS)
    if hard == resource.RLIM_INFINITY or hard > soft:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, max(soft, needed))
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = (soft - _OTHER_DESCRIPTORS) // 3
    return max(8, min(MOST_CONNECTIONS, room))


class _Quiet:
    """Says once a minute that descriptors ran out, instead of a traceback each second.

    The event loop tries again by itself, and takes those who wait as soon as there is room.
    """

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if isinstance(problem, ValueError) and "file descriptor: -1" in str(problem):
            return  # the loop tries again for a server that has ended meanwhile
        if not isinstance(problem, OSError) or problem.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next:
            self._next = loop.time() + _QUIET_SECONDS
            text = "warning: too many files are open; new connections wait (see ulimit -n)\n"
            sys.stderr.write(text)


def _is_news(record: logging.LogRecord) -> bool:
    """False for a request that was cut off because the server ends: that is no mistake."""
    problem = record.exc_info[1] if record.exc_info else None
    return not isinstance(problem, asyncio.CancelledError) and "graceful" not in str(record.msg)


class _Server(uvicorn.Server):
    """uvicorn without its own idea of signals: there are several, and the process is not its."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.finished = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self.listening.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer until told to stop."""
        try:
            await super().serve(sockets)
        finally:
            self.finished.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _server(listener: Listener, most: int) -> _Server:
    return _Server(
        uvicorn.Config(
            listener.app,
            http=listener.protocol,
            # Nothing here speaks WebSocket: a request to switch would be held open unanswered.
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=most,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )


@contextmanager
def _signals(stop: Callable[[signal.Signals], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def _by_path(apps: dict[str, App], otherwise: App) -> App:
    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path in apps:
            scope[ROUTE] = path
        await apps.get(path, otherwise)(scope, receive, send)

    return choose


def _below(prefix: str, inside: App, otherwise: App) -> App:
    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        below = scope["type"] == "http" and f"{scope['path']}/".startswith(prefix)
        await (inside if below else otherwise)(scope, receive, send)

    return choose


def connection_class(events: EventLog, *, token: bool) -> type[IncomingConnection]:
    """Return the protocol of a server that also records what never became a request."""

    def record(trace_id: str, status: int) -> None:
        body = Audit(method="?", path="", size=0, status=status, door=Door.REST)
        events.emit(body, trace_id=trace_id)

    members = {"on_refused": staticmethod(record), "token_needed": token}
    return type("GatewayConnection", (IncomingConnection,), members)
