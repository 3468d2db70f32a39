"""What a conversation may do: its rules, those stored for its project, and the floor below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evercontext.access.floor import reason_to_ask
from evercontext.access.rules import COMMANDS, Rule, Ruling, Verdict, judge, parse
from evercontext.domain.tool import Arguments, Caller, Tool
from evercontext.storage.store import Store


class StoredRules:
    """The ``permission_rules`` table: what holds for good in one project."""

    def __init__(self, store: Store, project_path: str) -> None:
        self._store, self._project = store, project_path

    async def all(self) -> list[Rule]:
        """Every rule of this project, oldest first."""
        rows = await self._store.fetch_all(
            "SELECT verdict, rule FROM permission_rules WHERE project_path = ? ORDER BY id",
            (self._project,),
        )
        return [parse(row["verdict"], row["rule"]) for row in rows]

    async def add(self, rule: Rule) -> None:
        """Keep a rule; one with the same text is replaced."""
        await self._store.execute(
            "INSERT INTO permission_rules (project_path, verdict, rule) VALUES (?, ?, ?)"
            " ON CONFLICT (project_path, rule) DO UPDATE SET verdict = excluded.verdict",
            (self._project, rule.verdict, rule.text),
        )

    async def remove(self, text: str) -> bool:
        """Forget a rule; ``False`` if there was none."""
        return await self._store.execute(
            "DELETE FROM permission_rules WHERE project_path = ? AND rule = ?",
            (self._project, text),
        ) > 0  # fmt: skip


@dataclass(slots=True)
class Permissions:
    """Decides over calls. Deny beats everything; the floor asks whatever was allowed."""

    root: str = ""
    yes: bool = False
    """The user allowed beforehand whatever is not denied and not below the floor."""
    stored: Sequence[Rule] = ()
    session: list[Rule] = field(default_factory=list)

    def __call__(self, tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        """Answer as a gate's policy."""
        return self.ruling(tool, arguments).verdict

    def ruling(self, tool: Tool, arguments: Arguments) -> Ruling:
        """The verdict, and the rule behind it if there is one."""
        found = judge([*self.stored, *self.session], tool, arguments)
        if found and found.verdict == "deny":
            return found
        if self.floor(tool, arguments):
            return Ruling("ask")
        if found:
            return found
        return Ruling("ask" if tool.writes and not self.yes else "allow")

    def floor(self, tool: Tool, arguments: Arguments) -> str | None:
        """Why this call is asked for every time, or ``None``."""
        if tool.name in COMMANDS:
            return reason_to_ask(str(arguments.get("command", "")), self.root)
        line = arguments.get("command")
        # run.test and its like take a command line of their own.
        if tool.name.startswith("run.") and isinstance(line, str):
            return reason_to_ask(line, self.root)
        return None
