"""Authenticate the clients of the tool router: token, project, and perhaps a session."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.access.access_tokens import AccessToken, Tokens
from evercontext.access.router_projects import UNASSIGNED, Projects
from evercontext.domain.caller_scope import NO_ACCESS, Scope
from evercontext.errors import StoreForbidden, StoreProblem, Unauthorized
from evercontext.files.project_identity import identity_of
from evercontext.mcp.messages import meta_of
from evercontext.mcp.server.http import Headers, Refused
from evercontext.server.login_check import LoginCheck
from evercontext.storage.login import use_login

SESSION_HEADER = b"mcp-session-id"
PROJECT_HEADER = b"x-evercontext-project"
_SIGNATURE_LENGTH = 32


@dataclass(frozen=True, slots=True)
class RouterClient:
    """A client of the router: its token, and what it may see."""

    token: str | None
    scope: Scope
    session: str = ""
    user: str | None = None
    """The user whose memories count: the one the token was made for."""
    role: str | None = None
    """What the user of a login may do."""
    project: str | None = None
    """The project whose memories count, by its one name; ``None``: the project of the root."""


ANONYMOUS = RouterClient(None, NO_ACCESS)
"""A client that has not authenticated yet, and sees nothing."""


@dataclass(frozen=True, slots=True)
class RouterSessions:
    """Issues session ids that are signed, so that none has to be stored.

    A session gives no right. It only says which session is meant when a call is cancelled, so it
    must not be another token's.
    """

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def issue(self, token: str | None) -> str:
        """Return a new session id for this token alone; for any token if there was none yet."""
        name = secrets.token_hex(8)
        return f"{name}.{self._sign(name)}.{self._sign(name, token or '')}"

    def check(self, session: str, token: str | None) -> None:
        """Raise ``Refused`` unless the session was issued here, to this token."""
        name, _, rest = session.partition(".")
        ours, _, bound = rest.partition(".")
        if not hmac.compare_digest(ours.encode(), self._sign(name).encode()):
            raise Refused(404, "there is no such session: initialize again")
        allowed = (self._sign(name, token or ""), self._sign(name, ""))
        if not any(hmac.compare_digest(bound.encode(), sign.encode()) for sign in allowed):
            raise Refused(403, "unauthorized: the session is another token's")

    def _sign(self, *parts: str) -> str:
        message = "\0".join(parts).encode("utf-8", "replace") + bytes([len(parts)])
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:_SIGNATURE_LENGTH]


class Authenticator:
    """Authenticates every request anew."""

    def __init__(
        self,
        tokens: Tokens,
        projects: Projects,
        root: Path,
        *,
        allow_anonymous: bool,
        on_project_renamed: Callable[[], Awaitable[object]],
        logins: LoginCheck | None = None,
    ) -> None:
        self._tokens, self._projects = tokens, projects
        self._allow_anonymous = allow_anonymous
        self._root, self._on_project_renamed = root.resolve(), on_project_renamed
        self.sessions = RouterSessions()
        self._logins = logins
        self._names: dict[str, str] = {}

    async def authenticate(self, headers: Headers, params: Mapping[str, Any]) -> RouterClient:
        """Return who sends a request; raise ``Refused`` if it may not."""
        meta = meta_of(params)
        if self.needs_login:
            return await self._log_in(bearer_token(headers) or meta.get("token"))
        token = await self._token(bearer_token(headers) or meta.get("token"))
        name = token.name if token else None
        session = _text(headers, SESSION_HEADER)
        if session:
            self.sessions.check(session, name)
        requested = _text(headers, PROJECT_HEADER) or meta.get("projectId") or ""
        project = await self._project(str(requested), token)
        own_root = await self._is_own_root(project, token)
        scope = Scope(project, token.servers if token else None, own_root)
        memories = await self._name_of(project) if project else None
        user = token.user if token else None
        return RouterClient(name, scope, session, user, project=memories)

    @property
    def needs_login(self) -> bool:
        """Whether users log in; their requests stand alone, so that any process may answer."""
        return self._logins is not None and self._logins.is_needed

    async def _log_in(self, secret: Any) -> RouterClient:
        assert self._logins is not None
        try:
            login = await self._logins.check(secret if isinstance(secret, str) else "")
        except Unauthorized as problem:
            raise Refused(401, f"unauthorized: {problem}") from None
        except StoreForbidden as problem:
            raise Refused(403, f"unauthorized: {problem}") from None
        except StoreProblem as problem:
            raise Refused(503, str(problem)) from None
        # For the rest of this request, whatever tasks it starts.
        use_login(login)
        return RouterClient(login.user, Scope(), user=login.user, role=login.role)

    async def _is_own_root(self, project: str | None, token: AccessToken | None) -> bool:
        """Tell whether the root that our own tools work in is for this token and project."""
        bound = await self._projects.of_directory(self._root)
        name = bound.id if bound else None
        if token and token.projects is not None:
            return name in token.projects and project in (None, name)
        return name is None or project in (None, name)

    async def _name_of(self, project: str) -> str:
        """Return the name a router's project has everywhere, if it is bound to a directory."""
        path = {row.id: row.path for row in await self._projects.all()}.get(project)
        if not path:
            return project
        # A remote may be added while we run: the memories are under its name then.
        name = await asyncio.to_thread(identity_of, Path(path))
        earlier, self._names[path] = self._names.get(path, name), name
        if name != earlier:
            await self._on_project_renamed()
        return name

    async def _token(self, secret: Any) -> AccessToken | None:
        if not secret and self._allow_anonymous:
            return None
        token = await self._tokens.check(secret) if isinstance(secret, str) else None
        if token is None and isinstance(secret, str) and secret:
            name = await self._tokens.revoked_name(secret)
            if name is not None:
                text = f"unauthorized: the token {name!r} was revoked (evercontext tokens create)"
                raise Refused(401, text)
        if token is None:
            raise Refused(401, "unauthorized: a token is needed (evercontext tokens create)")
        return token

    async def _project(self, requested: str, token: AccessToken | None) -> str | None:
        if requested in ("", UNASSIGNED):
            return None
        known = {project.id for project in await self._projects.all()}
        allowed = token is None or token.projects is None or requested in token.projects
        if requested not in known or not allowed:
            raise Refused(403, "unauthorized: this token is not for that project")
        return requested


def single_headers(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name without repeated ones, of which two readers could take different."""
    headers: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    for name, value in pairs:
        if name in headers:
            repeated.add(name)
        headers[name] = value
    for name in repeated:
        del headers[name]
    return headers


def bearer_token(headers: Headers) -> str:
    """Return the token of the ``Authorization`` header."""
    scheme, _, secret = _text(headers, b"authorization").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _text(headers: Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()
