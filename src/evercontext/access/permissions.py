"""Decide what a conversation may do: its rules, the project's, and the fixed limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evercontext.access.approval_rules import (
    AccessRule,
    Ruling,
    Verdict,
    granted_access,
    has_command,
    judge,
    parse,
    requested_access,
)
from evercontext.access.never_auto_approved import reason_to_ask
from evercontext.domain.tool import Arguments, Caller, CommandAccess, Tool
from evercontext.errors import EverContextError, StoreGone
from evercontext.settings import Settings
from evercontext.storage.key_value import owner_of_keys
from evercontext.storage.outbox_file import Outbox
from evercontext.storage.store import Store

UNREAD = "the rules of this project cannot be read now: every change is asked for"


class StoredRules:
    """The ``permission_rules`` table: what holds for good in one project."""

    def __init__(self, store: Store, project_path: str) -> None:
        self._store, self._project = store, project_path

    async def all(self) -> list[AccessRule]:
        """Every rule of this project, oldest first.

        A server that is away is answered for by what it said last; ``StoreGone`` if it never did.
        """
        box = Outbox(self._store.report.outbox) if self._store.report.outbox else None
        try:
            rows = await self._store.fetch_all(
                "SELECT verdict, rule FROM permission_rules WHERE project_path IN (?, ?)"
                " ORDER BY id",
                (self._project, self._own),
            )
        except StoreGone:
            copied = await asyncio.to_thread(box.copied, self._copy) if box else None
            if copied is None:
                raise
            rows = json.loads(copied)
        else:
            # A copy that cannot be renewed costs nothing as long as the server answers.
            with suppress(EverContextError):
                if box:
                    await asyncio.to_thread(box.copy, self._copy, json.dumps(rows))
        return [parse(row["verdict"], row["rule"]) for row in rows]

    @property
    def _own(self) -> str:
        """The project as the rules of a login name it; others would not be bound by them."""
        return owner_of_keys(self._store) + self._project

    @property
    def _copy(self) -> str:
        return f"rules:{self._project}"

    async def add(self, rule: AccessRule) -> None:
        """Keep a rule; one with the same text is replaced."""
        await self._store.execute(
            "INSERT INTO permission_rules (project_path, verdict, rule) VALUES (?, ?, ?)"
            " ON CONFLICT (project_path, rule) DO UPDATE SET verdict = excluded.verdict",
            (self._own, rule.verdict, rule.text),
        )
        await self._renew_copy()

    async def remove(self, text: str) -> bool:
        """Forget a rule; ``False`` if there was none."""
        gone = await self._store.execute(
            "DELETE FROM permission_rules WHERE project_path = ? AND rule = ?",
            (self._own, text),
        )
        await self._renew_copy()
        return gone > 0

    async def _renew_copy(self) -> None:
        if self._store.report.outbox:
            with suppress(StoreGone):
                await self.all()


@dataclass(slots=True)
class Permissions:
    """Decides over calls. Deny beats everything; the floor asks whatever was allowed."""

    root: str = ""
    yes: bool = False
    """The user allowed beforehand whatever is not denied and not below the floor."""
    stored: Sequence[AccessRule] = ()
    session: list[AccessRule] = field(default_factory=list)
    unread: bool = False
    """The stored rules cannot be read; one may deny or ask, so every change is asked for."""

    def __call__(self, tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        """Answer as a gate's policy."""
        return self.ruling(tool, arguments).verdict

    def ruling(self, tool: Tool, arguments: Arguments) -> Ruling:
        """The verdict, and the rule behind it if there is one."""
        ruling = judge([*self.stored, *self.session], tool, arguments)
        if ruling and ruling.verdict == "deny":
            return ruling
        if self.floor(tool, arguments):
            return Ruling("ask")
        if ruling:
            return ruling
        if requested_access(tool, arguments) is not CommandAccess.SANDBOX:
            # Whatever was allowed beforehand was allowed in the sandbox.
            return Ruling("ask")
        free = self.yes and not self.unread
        return Ruling("ask" if tool.writes and not free else "allow")

    def granted(self, tool: Tool, arguments: Arguments) -> CommandAccess:
        """Return what the rules open to the command of a call."""
        if self.unread:
            return CommandAccess.SANDBOX
        return granted_access([*self.stored, *self.session], tool, arguments)

    def floor(self, tool: Tool, arguments: Arguments) -> str | None:
        """Why this call is asked for every time, or ``None``."""
        if tool.caution and (reason := tool.caution(arguments)):
            return reason
        if not has_command(tool, arguments):
            return None
        return reason_to_ask(str(arguments.get("command", "")), self.root)


async def open_permissions(
    stored: StoredRules, settings: Settings, *, yes: bool = False
) -> Permissions:
    """The permissions of a project, with its stored rules as far as they can be known."""
    root = str(settings.root.resolve())
    opened = [
        *(AccessRule("allow", "network", line) for line in settings.allow_network),
        *(AccessRule("allow", "outside", line) for line in settings.allow_outside),
    ]
    try:
        return Permissions(root, yes, await stored.all(), opened)
    except StoreGone:
        return Permissions(root, yes, session=opened, unread=True)
