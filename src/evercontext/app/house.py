"""``EverContext``: everything wired together, for one root and one home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evercontext.agent.baseline import NewFailures
from evercontext.agent.briefing import Surroundings
from evercontext.agent.limits import Limits
from evercontext.agent.planner import Planner
from evercontext.agent.skills import Skills, listed, skill_tool
from evercontext.agent.task import Rollback, TaskReport, TaskRun, new_trace_id
from evercontext.agent.verify import Check, Checker
from evercontext.app.baseline import Baseline
from evercontext.app.calibrations import Calibrations
from evercontext.app.checked_before import CheckedBefore
from evercontext.app.equipment import ESSENTIAL, equip, plugin_tools
from evercontext.app.equipment import redactor as redactor
from evercontext.app.file_rules import agent_rules
from evercontext.app.hooking import open_hooks
from evercontext.app.instructions import LONGEST, NAMES, outer_instructions
from evercontext.app.mending import checked_and_mended
from evercontext.app.models import open_model
from evercontext.app.planning import PlanChoice, Planning
from evercontext.app.prices import price
from evercontext.app.recollection import Recollection
from evercontext.app.resumption import alone
from evercontext.app.routing import open_catalog
from evercontext.app.trace_index import TraceIndex
from evercontext.catalog.tools import Catalog
from evercontext.domain.event import RolledBack
from evercontext.domain.model import Model
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ConfigError, FileProblem, PolicyError, StoreGone
from evercontext.evaluation.history import EvaluationHistory
from evercontext.events.log import EventLog
from evercontext.settings import Settings, process_environment
from evercontext.storage.opener import open_or_wait
from evercontext.storage.store import Store
from evercontext.tools.approval_gate import Gate, nobody
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.checkpoints import audit_lines, undo
from evercontext.workspace.command_marks import settle
from evercontext.workspace.project_commands import packages
from evercontext.workspace.workspace import LocalWorkspace, Workspace


@dataclass(slots=True)
class EverContext:
    """The open house. Use ``async with EverContext.open(settings) as app``."""

    settings: Settings
    events: EventLog
    store: Store
    workspace: Workspace
    toolbox: Toolbox
    traces: TraceIndex
    memory: Recollection
    catalog: Catalog
    notices: tuple[str, ...] = ()
    """What a person should be told: of the settings, of a repaired database."""

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator[EverContext]:
        """Open home, root, log and store; whatever fails names its fix and leaves nothing open."""
        check_root(settings)
        make_home(settings.home)
        async with AsyncExitStack() as stack:
            secrets = redactor(settings)
            events = EventLog(settings.traces, secrets)
            stack.callback(events.close)
            store = await open_or_wait(settings.database, settings.database_url)
            stack.push_async_callback(store.close)
            traces = TraceIndex(store, events, settings.traces, secrets.masked)
            stack.push_async_callback(traces.close)
            history = EvaluationHistory(store, settings.home, secrets.masked, settings.user)
            left = await settle_commands(settings)
            workspace, tools = equip(settings, stack, events, history)
            memory = Recollection.of(store, settings.root, secrets.masked, events)
            stack.push_async_callback(memory.settle)
            await memory.catch_up()
            catalog = open_catalog(settings, store, events, secrets.learn)
            stack.push_async_callback(catalog.servers.close)
            # Two more tools are worth their tokens only where they lead somewhere.
            meta = catalog.tools() if await _has_servers(catalog) else []
            recorder = workspace if isinstance(workspace, LocalWorkspace) else None
            hooks = open_hooks(settings, process_environment(), recorder, events)
            skills = skills_of(settings)
            meta += [skill_tool(skills)] if any(one.usable for one in skills.all()) else []
            plugged = await asyncio.to_thread(plugin_tools)
            everything = [*tools, *plugged, *memory.tools(), *meta]
            root = str(settings.root.resolve())
            toolbox = Toolbox(everything, events, hooks=hooks, root=root)
            told = (*settings.notices, *left, *store.report.warnings, *memory.missing())
            yield cls(settings, events, store, workspace, toolbox, traces, memory, catalog, told)

    @property
    def principal(self) -> Principal:
        """Who works here, for those that are not told otherwise."""
        return Principal(user=self.settings.user, project=self.memory.project)

    @property
    def skills(self) -> Skills:
        """What the agent can look up: the user's skills, and the project's."""
        return skills_of(self.settings)

    @property
    def evaluations(self) -> EvaluationHistory:
        """What was judged before: list it, follow one document, read the versions made."""
        settings = self.settings
        return EvaluationHistory(self.store, settings.home, self.memory.clean, settings.user)

    async def run_task(
        self,
        text: str,
        *,
        mode: Mode = Mode.AGENT,
        gate: Gate | None = None,
        model_name: str | None = None,
        trace_id: str | None = None,
        choice: PlanChoice | None = None,
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
            calibrations = Calibrations(self.store)
            window = await calibrations.window(model.info)
            toolbox = self.toolbox.only(ESSENTIAL) if model.info.tiny else self.toolbox
            if model.info.tiny:
                surroundings = replace(surroundings, skills="")
            verify, repair = checked_and_mended(
                self.checks(detect=self.settings.auto_test is not False),
                self.settings, self.workspace, by_default=True, tiny=model.info.tiny,
            )  # fmt: skip
            run = TaskRun(
                model=model,
                toolbox=toolbox.behind(gate) if gate else toolbox,
                events=self.events,
                caller=caller,
                surroundings=surroundings,
                root=str(self.settings.root),
                limits=limits(self.settings),
                price=price,
                make_plan=choice.over(
                    await self._planner(stack, model.info.name, surroundings), self.events
                ),
                window=window,
                reminder=None if model.info.tiny else await self.memory.remind(text, caller),
                width=_width(self.settings, model, gate),
                rollback=self._rollback(trace_id) if self.settings.rollback_on_failure else None,
                session="resume" if before else "startup",
                changed_before=before.files() if before else (),
                verify=verify,
                repair=repair,
            )
            report = await run.run(text)
            await calibrations.keep(model.info, window)
            await self.memory.keep(text, report, caller)
            if toolbox.hooks:
                await toolbox.hooks.fire("SessionEnd", {"reason": "exit"}, caller)
            return report

    def checks(self, *, detect: bool) -> Checker | NewFailures:
        """The checks that the harness runs after changes: those set, and the tests it finds.

        What was red before a task is told apart, unless its repair is asked for, too.
        """
        root = self.settings.root.resolve()
        before = CheckedBefore(self.settings.traces, root)

        def kinds(changed: Sequence[str]) -> tuple[Check, ...]:
            return tuple(self._wanted(detect, changed))

        checker = Checker(self.toolbox, self.events, kinds, before, root)
        if self.settings.repair_all or not isinstance(self.workspace, LocalWorkspace):
            return checker
        policy = agent_rules(self.settings)
        baseline = Baseline(self.settings, self.workspace, policy, self.events, self.store, kinds)
        return NewFailures(checker, baseline)

    def _wanted(self, detect: bool, changed: Sequence[str]) -> Iterator[Check]:
        settings, root = self.settings, self.settings.root.resolve()
        if settings.lint_cmd:
            yield Check("lint")
        if settings.test_cmd:
            yield Check("test")
        elif detect:
            # In a repository of several packages, those that were changed are checked.
            found = packages(root, "test", changed or ["."], process_environment())
            yield from (Check("test", directory) for directory in found)
            if settings.auto_test and not found:
                yield Check("test")

    async def surroundings(self, caller: Caller) -> Surroundings:
        """What the agent is told of the project: its name, its files, its instructions."""
        listing = await self.workspace.list(".", caller, recursive=True, max_items=400)
        return Surroundings(
            root_name=self.settings.root.name or "/",
            tree=tuple(f"{e.name}/" if e.is_dir else e.name for e in listing.entries),
            instructions=await self._instructions(caller),
            skills=listed(await asyncio.to_thread(self.skills.all)),
        )

    async def _instructions(self, caller: Caller) -> str:
        places = (self.settings.root, self.settings.home)
        parts = [await asyncio.to_thread(outer_instructions, *places)]
        for name in NAMES:
            try:
                parts.append((await self.workspace.read(name, caller)).content[:LONGEST])
                break
            except (FileProblem, PolicyError):
                continue
        return "\n\n".join(part for part in parts if part)

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
        """A planner over this house: the model of that name, the index, the memory, the cache."""
        only = replace(self.settings, fallback_models=())
        model, who = await open_model(only, name), self.settings.user
        planner = Planner(model, self.store, self.memory.clean, who)
        stack.push_async_callback(planner.model.aclose)
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

    def _rollback(self, trace_id: str) -> Rollback:
        async def rollback() -> RolledBack:
            if not isinstance(self.workspace, LocalWorkspace):
                raise ConfigError("the files are behind EC_MCP_URL", fix="Undo it there")
            done = await undo(self.workspace.journal, trace_id)
            for line in audit_lines(self.workspace.journal, done, Door.RUN):
                self.events.note(line, trace_id=trace_id, needed=False)
            await self.memory.follow_undo(self.workspace.journal, trace_id, done)
            kept = tuple({"path": one.path, "reason": one.reason} for one in done.kept)
            return RolledBack(
                restored=done.restored, removed=done.removed, kept=kept, undo=done.trace_id
            )

        return rollback


async def settle_commands(settings: Settings) -> tuple[str, ...]:
    """Put away what commands left that were cut off, in whatever project; say what was done."""
    environment = process_environment()
    return await asyncio.to_thread(settle, settings.home, agent_rules(settings), environment)


async def _has_servers(catalog: Catalog) -> bool:
    """Whether outside servers are known; a database that is away tells of none."""
    try:
        return bool(await catalog.servers.table.all())
    except StoreGone:
        return False


def _width(settings: Settings, model: Model, gate: Gate | None) -> int:
    """How many tasks run at once: one where a person is asked, or the model is small."""
    asks = gate is not None and gate.ask is not nobody
    # A hook may write, and what it wrote must be known from what another task writes meanwhile.
    alone = asks or model.info.tiny or bool(settings.hooks)
    return 1 if alone else max(1, settings.parallel_tasks)


def skills_of(settings: Settings) -> Skills:
    """Where the skills of these settings lie."""
    return Skills(settings.root.resolve(), settings.home, Path.home())


def limits(settings: Settings) -> Limits:
    """The limits of one task."""
    return Limits(
        turns=settings.max_turns,
        seconds=settings.timeout,
        tokens=settings.max_tokens,
        usd=settings.max_budget_usd,
    )


def check_root(settings: Settings) -> None:
    """Refuse a root that is not there, cannot be read, or is far too wide."""
    root = settings.root
    if not root.is_dir():
        raise ConfigError(f"{root} is not a directory", fix="Name one with --root")
    try:
        next(root.iterdir(), None)
    except OSError as problem:
        raise ConfigError(
            f"{root} cannot be read: {problem.strerror}",
            fix="Check its permissions, or name another with --root",
        ) from None
    real, home = root.resolve(), Path.home().resolve()
    if (real == home or real in home.parents) and not settings.allow_wide_root:
        raise ConfigError(
            f"{root} as root would put everything you have within reach",
            fix="Go into a project directory, or say --allow-wide-root",
        )


def make_home(home: Path) -> None:
    """Make the home folder, private to the user."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise ConfigError(f"the home folder {home} cannot be made: {problem.strerror}",
                          fix="Set EC_HOME to a folder you can write") from None  # fmt: skip
