"""Resources and prompts of every server, under names that stay the same.

A prompt is ``server:name``, as a tool is; a resource is ``evercontext://server/`` and its own
address. So nothing has to be remembered to find the way back, and two servers never collide. Only
results pass as a server wrote them: whose the links in them are is remembered for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evercontext.catalog.call_results import asks_for_input
from evercontext.catalog.server_lifecycle import Backend
from evercontext.catalog.servers import PATIENCE, Servers
from evercontext.catalog.validation import LONGEST_DESCRIPTION
from evercontext.domain.caller_scope import NOTHING, Aside, Scope
from evercontext.errors import ServerProblem
from evercontext.mcp.client.listing import MOST_ITEMS, Listed
from evercontext.mcp.messages import Params, Result

SCHEME = "evercontext://"
LONGEST_NAME = 128
LONGEST_ADDRESS = 2_048
MOST_LINKS = 10_000
"""Links in results whose server is remembered: the newest ones."""
NO_MORE: Params = {}
_Rename = Callable[[str, dict[str, Any]], dict[str, Any] | None]


class Resources:
    """Lists and reads the resources and prompts of servers."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._working: dict[tuple[str, str], asyncio.Task[Listed]] = {}
        self._linked: dict[tuple[str, str], None] = {}
        """Addresses in results and the servers that gave them, oldest first."""

    async def list(self, what: str, scope: Scope) -> list[dict[str, Any]]:
        """List ``resources``, ``resources/templates`` or ``prompts`` of every server in time."""
        backends = await self._servers.visible(scope)
        asking = {backend.config.id: self._asking(what, backend) for backend in backends}
        if asking:
            await asyncio.wait(asking.values(), timeout=PATIENCE)
        return [item for id, task in asking.items() for item in _shown(what, id, task)]

    def _asking(self, what: str, backend: Backend) -> asyncio.Task[Listed]:
        """The question under way, or a new one: a server that starts slowly goes on starting."""
        key = (what, backend.config.id)
        task = self._working.get(key)
        if task is None or task.done():
            task = self._working[key] = asyncio.create_task(backend.list_all(what))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def read(self, address: str, scope: Scope, more: Params = NO_MORE) -> Result | None:
        """Read a resource; ``None`` if it is not there for this caller.

        ``more`` is what a stateless client brings along; only such a client can be asked back.
        """
        if not address.startswith(SCHEME):
            linked = await self._linked_backend(address, scope)
            if linked is None:
                return None
            return await _request(linked, "resources/read", {"uri": address, **more}, bool(more))
        server, _, own = address.removeprefix(SCHEME).partition("/")
        backend = await self._servers.backend(server, scope)
        if backend is None or not own:
            return None
        result = await _request(backend, "resources/read", {"uri": own, **more}, bool(more))
        if asks_for_input(result.value):
            return result
        return Result(_readdress(server, result.value), "")

    def note_links(self, server: str, answer: Any) -> None:
        """Remember the server of the links in an answer: they are passed on as it wrote them."""
        for address in _links_in(answer):
            self._linked.pop((address, server), None)
            self._linked[address, server] = None
        for oldest in [*self._linked][: max(0, len(self._linked) - MOST_LINKS)]:
            del self._linked[oldest]

    async def _linked_backend(self, address: str, scope: Scope) -> Backend | None:
        """Return the server that gave a link last, or lists a resource of that address."""
        for known, server in reversed(self._linked):
            if known == address and (backend := await self._servers.backend(server, scope)):
                return backend
        prefixed = [item["uri"] for item in await self.list("resources", scope)]
        for listed in prefixed:
            server, _, own = listed.removeprefix(SCHEME).partition("/")
            if own == address:
                return await self._servers.backend(server, scope)
        return None

    async def get_prompt(
        self, name: str, arguments: Params, scope: Scope, more: Params = NO_MORE
    ) -> Result | None:
        """Fill a prompt in; ``None`` if it is not there for this caller."""
        server, _, own = name.partition(":")
        backend = await self._servers.backend(server, scope)
        if backend is None or not own:
            return None
        params = {"name": own, "arguments": arguments, **more}
        result = await _request(backend, "prompts/get", params, bool(more))
        messages = result.value.get("messages")
        parts = [m.get("content") for m in messages or () if isinstance(m, dict)]
        self.note_links(server, {"content": parts})
        return result

    async def subscribe(self, method: str, address: str, scope: Scope) -> Result | None:
        """Begin or end to follow a resource; ``None`` if it is not there for this caller."""
        server, _, own = address.removeprefix(SCHEME).partition("/")
        backend = await self._servers.backend(server, scope)
        if not address.startswith(SCHEME) or backend is None or not own:
            return None
        return await backend.ask(method, {"uri": own})

    async def complete(self, reference: Params, params: Params, scope: Scope) -> Result | None:
        """Complete an argument of a prompt or template; ``None`` if that is not there."""
        name, address = reference.get("name"), reference.get("uri")
        if isinstance(address, str) and address.startswith(SCHEME):
            server, _, own = address.removeprefix(SCHEME).partition("/")
            own_reference = {**reference, "uri": own}
        elif isinstance(name, str):
            server, _, own = name.partition(":")
            own_reference = {**reference, "name": own}
        else:
            return None
        backend = await self._servers.backend(server, scope)
        if backend is None or not own:
            return None
        return await backend.ask(
            "completion/complete", {"ref": own_reference, **params}, _aside(params)
        )


def _links_in(answer: Any) -> Iterator[str]:
    """Yield the addresses of links and embedded resources."""
    content = answer.get("content") if isinstance(answer, dict) else None
    for block in content if isinstance(content, list) else ():
        holder = block.get("resource", block) if isinstance(block, dict) else None
        address = holder.get("uri") if isinstance(holder, dict) else None
        if isinstance(address, str) and len(address) <= LONGEST_ADDRESS:
            yield address


async def _request(backend: Backend, method: str, params: Params, can_be_asked: bool) -> Result:
    result = await backend.ask(method, params, _aside(params))
    if asks_for_input(result.value) and not can_be_asked:
        raise ServerProblem(f"{backend.config.id} asks for input, and who called cannot be asked")
    return result


def _aside(params: Params) -> Aside:
    """Return what says that a request belongs to the stateless revision, if it does."""
    return Aside(more=params) if "_meta" in params else NOTHING


def _shown(what: str, server: str, task: asyncio.Task[Listed]) -> list[dict[str, Any]]:
    """The entries of one server that can be shown; one that failed has none."""
    if not task.done() or task.cancelled() or task.exception() is not None:
        return []
    rename = _RENAMED[what]
    entries = [entry for entry in task.result().items[:MOST_ITEMS] if isinstance(entry, dict)]
    return [shown for entry in entries if (shown := rename(server, entry)) is not None]


def _prompt(server: str, entry: dict[str, Any]) -> dict[str, Any] | None:
    name = entry.get("name")
    if not _fits(name, LONGEST_NAME):
        return None
    return {**entry, "name": f"{server}:{name}", **_described(entry)}


def _resource(server: str, entry: dict[str, Any], field: str = "uri") -> dict[str, Any] | None:
    address = entry.get(field)
    if not _fits(address, LONGEST_ADDRESS):
        return None
    return {**entry, field: f"{SCHEME}{server}/{address}", **_described(entry)}


def _template(server: str, entry: dict[str, Any]) -> dict[str, Any] | None:
    return _resource(server, entry, "uriTemplate")


_RENAMED: Mapping[str, _Rename] = {
    "prompts": _prompt,
    "resources": _resource,
    "resources/templates": _template,
}


def _fits(text: Any, longest: int) -> bool:
    return isinstance(text, str) and 0 < len(text) <= longest and text.isprintable()


def _described(entry: dict[str, Any]) -> dict[str, str]:
    about = entry.get("description")
    return {"description": about[:LONGEST_DESCRIPTION]} if isinstance(about, str) else {}


def _readdress(server: str, value: dict[str, Any]) -> dict[str, Any]:
    contents = value.get("contents")
    if not isinstance(contents, list):
        raise ServerProblem(f"{server} answered without contents")
    return {**value, "contents": [_readdress_part(server, part) for part in contents]}


def _readdress_part(server: str, part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("uri"), str):
        return {**part, "uri": f"{SCHEME}{server}/{part['uri']}"}
    return part
