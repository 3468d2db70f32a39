"""Open every part of EverContext for one project, and connect them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from evercontext.access.acting_user import acting_user
from evercontext.agent.baseline import NewFailures
from evercontext.agent.conversation import check_sees
from evercontext.agent.open_project import ESSENTIAL_TOOLS
from evercontext.agent.plan_only import plan_task
from evercontext.agent.plan_sources import EditPlan, PlanChoice, Planning
from evercontext.agent.planner import Planned, Planner
from evercontext.agent.project_repair import checks_and_repair, project_checks
from evercontext.agent.request_preview import Preview, preview
from evercontext.agent.resumption import alone
from evercontext.agent.skills import Skills, listed, skill_tool
from evercontext.agent.subagent import task_tool
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun, new_trace_id
from evercontext.agent.task_limits import effort_of, limits_of
from evercontext.agent.task_report import TaskReport
from evercontext.agent.task_undo import rollback_of
from evercontext.agent.verification import Checker
from evercontext.app.catalog import has_servers, open_catalog
from evercontext.app.models import (
    canonical_name,
    choose_model,
    describe_model,
    missing_model,
    open_model,
)
from evercontext.app.tools import git_status, open_tools, plugin_tools, settle_commands
from evercontext.catalog.discovery_tools import Catalog
from evercontext.catalog.server_table import ServerConfig
from evercontext.context.context_request import ContextConfig
from evercontext.context.memory_service import MemoryService
from evercontext.context.token_calibration import Calibrations
from evercontext.domain.message import Image
from evercontext.domain.model import Model
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.evaluation.score_history import EvaluationHistory
from evercontext.events.log import EventLog, open_log
from evercontext.events.redaction import redactor
from evercontext.events.trace_table import TraceIndex
from evercontext.models.prices import price
from evercontext.settings import Settings, process_environment
from evercontext.settings.directories import check_root, make_home
from evercontext.storage.opener import open_or_wait
from evercontext.storage.store import Store
from evercontext.tools.approval_gate import Gate, nobody
from evercontext.tools.console_approval import AskingPlace
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.background_commands import BackgroundCommands, background_tools
from evercontext.workspace.hook_commands import open_hooks
from evercontext.workspace.instructions import instructions_of
from evercontext.workspace.web_fetch import web_fetch_tool
from evercontext.workspace.workspace import Workspace


@dataclass(slots=True)
class EverContext:
    """All open parts. Use ``async with EverContext.open(settings) as app``."""

    settings: Settings
    events: EventLog
    store: Store
    workspace: Workspace
    toolbox: Toolbox
    traces: TraceIndex
    memory: MemoryService
    catalog: Catalog
    background: BackgroundCommands | None = None
    """Commands that nobody waits for; none where commands run elsewhere."""
    notices: tuple[str, ...] = ()
    """Notices for the user: about the settings, a repaired database, interrupted commands."""
    _statuses: dict[str, str] = field(default_factory=dict)
    _asks_git: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, servers: Sequence[ServerConfig] = (), *, serving: bool = False
    ) -> AsyncIterator[EverContext]:
        """Open all parts; a failure names its fix and leaves nothing open.

        ``servers`` are MCP servers for this time only, beside those of the store. ``serving``: each
        request brings the login of its user.
        """
        check_root(settings)
        make_home(settings.home)
        async with AsyncExitStack() as stack:
            secrets = redactor(settings)
            events = open_log(settings, secrets)
            stack.callback(events.close)
            store = await open_or_wait(settings.database, settings.database_url, settings.login)
            stack.push_async_callback(store.close)
            who = await acting_user(store, settings, serving=serving)
            settings = replace(settings, user=who)
            traces = TraceIndex(store, events, settings.traces, secrets.masked)
            stack.push_async_callback(traces.close)
            history = EvaluationHistory(store, settings.home, secrets.masked, settings.user)
            interrupted = await settle_commands(settings)
            workspace, tools, background = open_tools(settings, stack, events, history)
            config = ContextConfig.of(settings)
            memory = MemoryService.of(store, settings.root, secrets.masked, events, config)
            stack.push_async_callback(memory.settle)
            await memory.catch_up()
            catalog = open_catalog(settings, store, events, secrets.learn, servers)
            stack.push_async_callback(catalog.servers.close)
            # Two more tools are worth their tokens only where servers are known.
            meta = catalog.tools() if await has_servers(catalog) else []
            hooks = open_hooks(settings, process_environment(), workspace.local, events)
            skills = skills_of(settings)
            meta += [skill_tool(skills)] if any(skill.usable for skill in skills.all()) else []
            plugged = await asyncio.to_thread(plugin_tools)
            everything = [*tools, *plugged, *memory.tools(), *meta]
            root = str(settings.root.resolve())
            toolbox = Toolbox(everything, events, hooks=hooks, root=root)
            notices = (*settings.notices, *interrupted, *store.report.warnings, *memory.missing())
            yield cls(
                settings,
                events,
                store,
                workspace,
                toolbox,
                traces,
                memory,
                catalog,
                background,
                notices,
            )

    @property
    def principal(self) -> Principal:
        """Return the user and the project that calls are made for by default."""
        return Principal(user=self.settings.user, project=self.memory.project)

    @property
    def skills(self) -> Skills:
        """Return the user's skills and the project's."""
        return skills_of(self.settings)

    @property
    def evaluations(self) -> EvaluationHistory:
        """Return the history of evaluations."""
        settings = self.settings
        return EvaluationHistory(self.store, settings.home, self.memory.clean, settings.user)

    def working_tools(self) -> Toolbox:
        """Return the tools of whoever works on a task here: they have commands of their own."""
        commands = background_tools(self.background) if self.background else []
        return self.toolbox.along_with([*commands, web_fetch_tool(), task_tool()])

    async def run_task(
        self,
        text: str,
        *,
        mode: Mode = Mode.AGENT,
        gate: Gate | None = None,
        model_name: str | None = None,
        trace_id: str | None = None,
        choice: PlanChoice | None = None,
        images: tuple[Image, ...] = (),
    ) -> TaskReport:
        """Do one task as ``evercontext run`` does it; ``choice`` says where its plan comes from."""
        choice = choice or PlanChoice()
        before = choice.interrupted
        trace_id = before.trace_id if before else trace_id or new_trace_id()
        principal = self.principal
        caller = Caller(trace_id, Door.RUN, mode, principal)
        async with AsyncExitStack() as stack:
            stack.enter_context(alone(self.settings.home, trace_id))
            if before:
                await asyncio.to_thread(before.check_stands, self.settings.home)
            surroundings = await self.surroundings(caller)
            model = await self._open(stack, model_name)
            check_sees(model, images)
            calibrations = Calibrations(self.store)
            window = await calibrations.window(model.info)
            tools = self.working_tools()
            toolbox = tools.only(ESSENTIAL_TOOLS) if model.info.tiny else tools
            if model.info.tiny:
                surroundings = replace(surroundings, skills="")
            verify, repair = checks_and_repair(
                self.checks(detect=self.settings.auto_test is not False),
                self.settings,
                self.workspace,
                by_default=True,
                tiny=model.info.tiny,
            )
            run = TaskRun(
                model=model,
                toolbox=toolbox.behind(gate) if gate else toolbox,
                events=self.events,
                caller=caller,
                surroundings=surroundings,
                root=str(self.settings.root),
                limits=limits_of(self.settings),
                price=price,
                effort=effort_of(self.settings),
                images=images,
                make_plan=choice.over(
                    await self._planner(stack, model.info.name, surroundings), self.events
                ),
                window=window,
                reminder=None if model.info.tiny else await self.memory.remind(text, caller),
                width=_width(self.settings, model, gate),
                rollback=rollback_of(self, trace_id) if self.settings.rollback_on_failure else None,
                session="resume" if before else "startup",
                changed_before=before.files() if before else (),
                background=self.background,
                verify=verify,
                repair=repair,
            )
            report = await run.run(text)
            await calibrations.keep(model.info, window)
            await self.memory.keep(text, report.final, caller)
            if toolbox.hooks:
                await toolbox.hooks.fire("SessionEnd", {"reason": "exit"}, caller)
            return report

    def checks(self, *, detect: bool) -> Checker | NewFailures:
        """Return the checks that run after changes; ``detect`` looks for tests."""
        return project_checks(self, detect=detect)

    async def surroundings(self, caller: Caller) -> Surroundings:
        """Describe the project for the system prompt: name, files, instructions, skills."""
        settings = self.settings
        listing, status = await asyncio.gather(
            self.workspace.list(".", caller, recursive=True, max_items=400),
            self._git_status(caller),
        )
        return Surroundings(
            root_name=settings.root.name or "/",
            tree=tuple(f"{e.name}/" if e.is_dir else e.name for e in listing.entries),
            instructions=await instructions_of(
                self.workspace, settings.root, settings.home, caller
            ),
            skills=listed(await asyncio.to_thread(self.skills.all)),
            git_status=status,
            attended=caller.door is Door.CHAT,
        )

    async def _git_status(self, caller: Caller) -> str:
        """Return git's status as the session, or the run, began: a prompt that stays is cached."""
        key = caller.session or caller.trace_id
        # A turn that comes while the chat prepares for it waits for the same look.
        async with self._asks_git:
            if key not in self._statuses:
                self._statuses[key] = await git_status(self.settings, self.workspace)
        return self._statuses[key]

    async def _open(self, stack: AsyncExitStack, name: str | None) -> Model:
        model = await open_model(self.settings, name)
        stack.push_async_callback(model.aclose)
        return model

    async def _planner(
        self, stack: AsyncExitStack, executor: str, surroundings: Surroundings
    ) -> Planning | None:
        name = self.settings.planner
        return await self.planning(stack, name, executor, surroundings) if name else None

    async def planning(
        self, stack: AsyncExitStack, name: str, executor: str, surroundings: Surroundings
    ) -> Planning:
        """Open a planner: the model of that name with the index, the memory and the cache."""
        only = replace(self.settings, fallback_models=())
        model, who = await open_model(only, name), self.settings.user
        calibrations = Calibrations(self.store)
        window = await calibrations.window(model.info)
        planner = Planner(model, self.store, self.memory.clean, who, window)
        stack.push_async_callback(planner.model.aclose)
        stack.push_async_callback(calibrations.keep, model.info, window)
        return Planning(
            planner=planner,
            surroundings=surroundings,
            executor=executor,
            toolbox=self.toolbox,
            workspace=self.workspace,
            memory=self.memory,
            events=self.events,
            settings=self.settings,
            price=price,
            cache=self.settings.plan_cache,
        )

    async def plan_task(
        self,
        text: str,
        *,
        trace_id: str | None = None,
        edit: EditPlan | None = None,
        model_name: str | None = None,
    ) -> Planned:
        """Plan with the configured planner, else with the model that would do the task."""
        settings = self.settings
        if not (model_name or settings.planner) and (problem := await missing_model(settings)):
            raise problem
        choice = await choose_model(settings)
        executor = model_name or (choice.name if choice else "")
        planner = canonical_name(settings.planner) if settings.planner else executor
        return await plan_task(
            self,
            text,
            planner=planner,
            executor=executor,
            trace_id=trace_id or new_trace_id(),
            edit=edit,
        )

    async def preview(self, task: str, model_name: str | None = None) -> Preview:
        """Assemble the first request of a task as ``run`` would, without sending it."""
        model = await describe_model(self.settings, model_name)
        try:
            return await preview(self, task, model.info)
        finally:
            await model.aclose()

    @property
    def asking_place(self) -> AskingPlace:
        """Return the project and the user that approvals are asked for."""
        memory = self.memory
        return AskingPlace(self.store, memory.path, self.settings.user, memory.clean)


def _width(settings: Settings, model: Model, gate: Gate | None) -> int:
    """Return how many tasks run at once: one if a person is asked or the model is small."""
    asks = gate is not None and gate.ask is not nobody
    # A hook may write, and its changes must be told from those of another task.
    alone = asks or model.info.tiny or bool(settings.hooks)
    return 1 if alone else max(1, settings.parallel_tasks)


def skills_of(settings: Settings) -> Skills:
    """Return the skills of the project and the user."""
    return Skills(settings.root.resolve(), settings.home, Path.home())
