"""Define what tasks need of an open project; the composition root provides it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Protocol

from evercontext.agent.planner import MakePlan
from evercontext.agent.system_prompt import Surroundings
from evercontext.context.memory_service import MemoryService
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.settings import Settings
from evercontext.storage.store import Store
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.workspace import Workspace

ESSENTIAL_TOOLS = ("list_files", "read_file", "write_file")
"""The only tools that a tiny model is offered: it chooses badly among many."""


class OpenProject(Protocol):
    """The open parts of one project."""

    settings: Settings
    events: EventLog
    store: Store
    workspace: Workspace
    toolbox: Toolbox
    memory: MemoryService

    @property
    def principal(self) -> Principal:
        """Return the user and the project that calls are made for."""
        ...

    async def surroundings(self, caller: Caller) -> Surroundings:
        """Describe the project for the system prompt."""
        ...

    async def planning(
        self, stack: AsyncExitStack, name: str, executor: str, surroundings: Surroundings
    ) -> MakePlan:
        """Open the planner of that name."""
        ...
