"""Who asks at the tool router: a token, a project, and perhaps a session that is theirs."""

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
from evercontext.domain.caller_scope import Scope as Sight
from evercontext.files.project_identity import identity_of
from evercontext.mcp.revisions import meta_of

SESSION = b"mcp-session-id"
PROJECT = b"x-evercontext-project"
_SIGNED = 32
Headers = Mapping[bytes, bytes]


class Refused(Exception):
    """Who asks may not: the HTTP status, and what is said inside MCP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: the token and the project that counts."""

    token: str | None
    sight: Sight
    session: str = ""
    user: str | None = None
    """Whose memories count: the one the token was made for."""
    project: str | None = None
    """Which project's: its one name, whichever way in was taken; ``None``: that of the root."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Names of conversations that nothing has to be remembered of: they are signed.

    A session gives no right. It only says which conversation is meant when a call is taken back,
    so it must not be another principal's.
    """

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def issue(self, token: str | None) -> str:
        """A new name, for this token alone; for any if there was none yet."""
        name = secrets.token_hex(8)
        return f"{name}.{self._sign(name)}.{self._sign(name, token or '')}"

    def check(self, session: str, token: str | None) -> None:
        """Raise unless the session is one of ours and this token's."""
        name, _, rest = session.partition(".")
        ours, _, bound = rest.partition(".")
        if not hmac.compare_digest(ours.encode(), self._sign(name).encode()):
            raise Refused(404, "there is no such session: initialize again")
        allowed = (self._sign(name, token or ""), self._sign(name, ""))
        if not any(hmac.compare_digest(bound.encode(), one.encode()) for one in allowed):
            raise Refused(403, "unauthorized: the session is another token's")

    def _sign(self, *parts: str) -> str:
        message = "\0".join(parts).encode("utf-8", "replace") + bytes([len(parts)])
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:_SIGNED]


class Doorkeeper:
    """Finds out who asks, anew at every question."""

    def __init__(
        self,
        tokens: Tokens,
        projects: Projects,
        root: Path,
        *,
        open_house: bool,
        renamed: Callable[[], Awaitable[object]],
    ) -> None:
        """Begin; ``renamed`` is awaited when a project has got another name."""
        self._tokens, self._projects, self._open = tokens, projects, open_house
        self._root, self._renamed = root.resolve(), renamed
        self.sessions = Sessions()
        self._names: dict[str, str] = {}

    async def visitor(self, headers: Headers, params: Mapping[str, Any]) -> Visitor:
        """Who asks, or ``Refused``."""
        meta = meta_of(params)
        token = await self._token(bearer(headers) or meta.get("token"))
        name = token.name if token else None
        session = _text(headers, SESSION)
        if session:
            self.sessions.check(session, name)
        wanted = _text(headers, PROJECT) or meta.get("projectId") or ""
        project = await self._project(str(wanted), token)
        own_root = await self._is_own_root(project, token)
        sight = Sight(project, token.servers if token else None, own_root)
        memories = await self._name_of(project) if project else None
        return Visitor(name, sight, session, token.user if token else None, memories)

    async def _is_own_root(self, project: str | None, token: AccessToken | None) -> bool:
        """Tell whether the root that our own tools work in is for this token and project."""
        bound = await self._projects.of_directory(self._root)
        name = bound.id if bound else None
        if token and token.projects is not None:
            return name in token.projects and project in (None, name)
        return name is None or project in (None, name)

    async def _name_of(self, project: str) -> str:
        """The name that a router's project has everywhere, if it is bound to a directory."""
        paths = {known.id: known.path for known in await self._projects.all()}
        path = paths.get(project)
        if not path:
            return project
        # A remote may be added while we run: the memories are under its name then.
        name = await asyncio.to_thread(identity_of, Path(path))
        earlier, self._names[path] = self._names.get(path, name), name
        if name != earlier:
            await self._renamed()
        return name

    async def _token(self, secret: Any) -> AccessToken | None:
        if not secret and self._open:
            return None
        token = await self._tokens.check(secret) if isinstance(secret, str) else None
        if token is None:
            raise Refused(401, "unauthorized: a token is needed (evercontext tokens create)")
        return token

    async def _project(self, wanted: str, token: AccessToken | None) -> str | None:
        if wanted in ("", UNASSIGNED):
            return None
        known = {project.id for project in await self._projects.all()}
        allowed = token is None or token.projects is None or wanted in token.projects
        if wanted not in known or not allowed:
            raise Refused(403, "unauthorized: this token is not for that project")
        return wanted


def single_headers(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; one that is there twice is not there: two readers could disagree."""
    found: dict[bytes, bytes] = {}
    twice: set[bytes] = set()
    for name, value in pairs:
        if name in found:
            twice.add(name)
        found[name] = value
    for name in twice:
        del found[name]
    return found


def bearer(headers: Headers) -> str:
    """The token of the ``Authorization`` header."""
    scheme, _, secret = _text(headers, b"authorization").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _text(headers: Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()
