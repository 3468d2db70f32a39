"""Run one task from beginning to end: trace, plan, loop, outcome."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from evercontext.agent.fix_request import asks_for_fix
from evercontext.agent.judgement import OVERRULED, judge, own_refusal, shortcomings, unsaid
from evercontext.agent.loop import (
    Beside,
    Loop,
    MayStop,
    Price,
    Remember,
    forget,
    no_price,
)
from evercontext.agent.plan import PlanTask
from evercontext.agent.plan_execution import CUT_OFF, PlanExecution, PlanPart, part_request
from evercontext.agent.planner import IMPLICIT, MakePlan, Planned, no_planner
from evercontext.agent.run_progress import Progress
from evercontext.agent.subagent import DELEGATION, Delegation
from evercontext.agent.system_prompt import Surroundings, brief, part_in
from evercontext.agent.task_background import BackgroundWork
from evercontext.agent.task_hooks import HookedTask
from evercontext.agent.task_limits import LimitHit, Meter, TaskLimits
from evercontext.agent.task_report import Rollback, Standing, TaskReport, roll_back
from evercontext.agent.verification import (
    CHANGED_SINCE,
    NOTHING_WANTED,
    CheckScope,
    Findings,
    Repair,
    Repairing,
    Verify,
    no_checks,
    no_repair,
    run_own,
    together,
)
from evercontext.context.conversation_window import Window
from evercontext.domain.check_verdicts import GREEN
from evercontext.domain.event import (
    Body,
    Final,
    Notice,
    Plan,
    Task,
    TaskBegan,
    TaskEnded,
)
from evercontext.domain.message import Image, Message, user
from evercontext.domain.model import Effort, Model, Usage
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.sent_tool_output import View
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import Cancelled, EverContextError, Terminated
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.background_commands import BackgroundCommands

MOST_REPLANS = 2
T = TypeVar("T")


def new_trace_id() -> str:
    """One UUID binds everything that belongs to one task."""
    return str(uuid.uuid4())


@dataclass(slots=True)
class TaskRun:
    """Everything one task needs."""

    model: Model
    toolbox: Toolbox
    events: EventLog
    caller: Caller
    surroundings: Surroundings
    root: str
    limits: TaskLimits = field(default_factory=TaskLimits)
    price: Price = no_price
    effort: Effort | None = None
    """How much the model thinks."""
    make_plan: MakePlan = no_planner
    window: Window | None = None
    conversation: list[Message] | None = None
    """The messages before this task and, afterwards, in it; ``None``: each part begins afresh."""
    view: View = field(default_factory=View)
    """The parts of the conversation that the model has been shown."""
    images: tuple[Image, ...] = ()
    """Pictures that go with the task."""
    remember: Remember = forget
    reminder: Message | None = None
    """Memories that bear on the task: shown with it, never part of the conversation."""
    verify: Verify = no_checks
    """Runs the project's checks once files were changed; the model has no say in it."""
    repair: Repair = no_repair
    """Repairs the causes of red checks, or reverts changes that did not help."""
    width: int = 1
    """Tasks of a plan that may run beside each other, where they touch different files."""
    rollback: Rollback | None = None
    """Takes the changes back if the task does not end well; ``None``: they stay."""
    session: str | None = None
    """How the session began that this is the first task of: ``startup``, ``resume``."""
    changed_before: tuple[str, ...] = ()
    """Files that an earlier run of the same trace had changed."""
    background: BackgroundCommands | None = None
    """Commands that the task may leave running while it works."""
    _findings: Findings = NOTHING_WANTED
    """The latest result of the checks."""
    _own: dict[str, tuple[int, Findings]] = field(default_factory=dict)
    """The results of the plan's own checks, and how many changes there had been."""
    _meter: Meter = field(init=False)
    _mended: Progress = field(default_factory=Progress)
    _parts_outside: list[PlanPart] = field(default_factory=list)
    """Parts of earlier plans that were done, or the task itself where there is no plan."""
    _following: PlanExecution | None = None
    _turnstile: asyncio.Lock = field(default_factory=asyncio.Lock)
    _hooked: HookedTask = field(init=False)
    _background: BackgroundWork = field(init=False)
    _advice: Message | None = None
    """Messages from hooks to the model."""

    @property
    def usage(self) -> Usage:
        """Return the tokens that the model was sent and answered so far."""
        return self._meter.usage

    def __post_init__(self) -> None:
        self._meter = Meter(self.limits)

    async def run(self, text: str) -> TaskReport:
        """Do the task; whatever happens, the trace ends with a ``final`` event."""
        began = self._begin(text)
        caller = dataclasses.replace(self.caller, parent=began)
        self._hooked = HookedTask(self.toolbox.hooks, caller)
        self._background = BackgroundWork(self.background, self.toolbox, caller, self._mended)
        stop_hearing = self.events.subscribe(self._hooked.hear)
        lent = DELEGATION.set(self._delegation())
        try:
            await self._background.begin()
            self._advice = await self._hooked.begin(text, self.session)
            await self._carry_out(text, began)
            await self._ask_to_stop(began)
            await self._background.settle()
            if self.caller.mode is Mode.AGENT and (self._changed() or self._asks_for_fix(text)):
                await self._check_all(text, began)
            return await self._end(began, None)
        except EverContextError as error:
            return await self._end(began, error)
        except asyncio.CancelledError as stopped:
            by_system = Terminated.code in stopped.args
            await self._end(
                began,
                Terminated("stopped by the system")
                if by_system
                else Cancelled("stopped by the user"),
            )
            raise
        finally:
            DELEGATION.reset(lent)
            stop_hearing()
            self._background.end()

    def _delegation(self) -> Delegation:
        place, spent, done = self.surroundings, self._meter, self._mended
        lent = Delegation(self.model, self.events, place, spent, done, self.price)
        return dataclasses.replace(lent, window=self.window, effort=self.effort)

    def _asks_for_fix(self, text: str) -> bool:
        """True if checks must pass even after a run that changed nothing; a person sees that."""
        return self.caller.door is not Door.CHAT and asks_for_fix(text)

    async def _check_all(self, text: str, began: str) -> None:
        """Run every check that is wanted and has not run since the last change."""
        writes = self._progress().writes
        fresh = [findings for at, findings in self._own.values() if at == writes]
        stale = tuple(command for command, (at, _) in self._own.items() if at != writes)
        self._findings = together([await self._check(text, began, stale), *fresh])

    async def _check(self, text: str, began: str, commands: tuple[str, ...]) -> Findings:
        """Run the checks of the project and these of the plan; repair the red ones."""
        caller = dataclasses.replace(self.caller, parent=began)
        scope = CheckScope(self._changed(), commands, self.toolbox, text)
        try:
            findings = await self._in_time(self.verify(caller, scope))
        except LimitHit as hit:
            self._emit(hit.event, began)
            raise
        self._findings = findings
        if findings.verdict != "red":
            return findings

        async def ask(about: str, toolbox: Toolbox) -> None:
            repair_progress = Progress()
            try:
                await self._converse(about, "repair", began, toolbox, repair_progress)
            finally:
                self._mended.refusals += repair_progress.refusals

        name = self.model.info.bare_name
        red_task = Repairing(
            text,
            caller,
            self.toolbox,
            self._changed(),
            name,
            ask,
            seconds_left=lambda: self._meter.seconds_left,
        )
        findings, changed = await self.repair(red_task, findings)
        self._mended.changed |= dict.fromkeys(changed, True)
        self._mended.writes += len(changed)
        return findings

    async def _carry_out(self, text: str, began: str) -> None:
        """Follow the plan, and make another one as long as it asks for that."""
        failure = ""
        for _ in range(1 + MOST_REPLANS):
            planned = await self._plan(text, failure, began)
            if planned.source == IMPLICIT:
                # The plan is the task itself: there is nothing to put in order.
                (task,) = planned.plan.tasks
                part = PlanPart(task)
                self._parts_outside.append(part)
                return await self._do(part, text, began, text)
            failed = await self._follow(text, planned, began)
            if failed is None or failed.task.on_error != "replan":
                return
            failure = f"{failed.task.title}: {failed.error or failed.text}"
            self._parts_outside = [part for part in self._parts() if part.done]
            self._following = None

    async def _plan(self, text: str, failure: str, began: str) -> Planned:
        caller = dataclasses.replace(self.caller, parent=began)
        planned = await self._in_time(self.make_plan(text, failure, caller))
        self._meter.add(planned.usage, planned.cost)
        tasks = tuple(task.to_json() for task in planned.plan.tasks)
        finished = tuple(sorted(planned.finished))
        source, tree = planned.source, planned.tree
        self._emit(Plan(tasks=tasks, source=source, finished=finished, tree=tree), began)
        return planned

    async def _follow(self, text: str, planned: Planned, began: str) -> PlanPart | None:
        """Do the tasks; return the one that ended the plan early, if any did."""
        plan = planned.plan

        async def do(part: PlanPart, following: PlanExecution) -> None:
            ended = [*self._parts_outside, *following.in_order()]
            prompt_text = part_request(text, part.task, ended) if len(plan.tasks) > 1 else text
            if part.task.id in planned.interrupted:
                prompt_text = f"{prompt_text}\n\n{CUT_OFF}"
            if part.task.id in planned.red and await self._is_green(part.task, began):
                part.outcome = Outcome.DONE
                return self._tell_end(part.task, part.outcome.word, began)
            if len(plan.tasks) == 1:
                return await self._do(part, prompt_text, began, text)
            began_part = TaskBegan(id=part.task.id, title=part.task.title)
            parent = self._emit(began_part, began)
            try:
                await self._do(part, prompt_text, parent, text)
            finally:
                self._tell_end(part.task, part.outcome.word, began)

        # A conversation has one history: its parts cannot be written side by side.
        width = self.width if self.conversation is None else 1
        self._following = following = PlanExecution(plan, do, width, planned.finished)
        failed = await following.run()
        while await self._repaired(text, following, began):
            failed = await following.go_on()
        for task in following.skipped():
            self._tell_end(task, "skipped", began)
        return failed

    async def _repaired(self, text: str, following: PlanExecution, began: str) -> bool:
        """Repair red tasks; their own checks, run again, decide which are done now."""
        red = [part for part in following.in_order() if part.outcome is Outcome.RED]
        if not red or not self._changed() or self.repair is no_repair:
            return False
        await self._check(text, began, tuple(c for part in red for c in part.task.checks))
        for part in red:
            if await self._is_green(part.task, began):
                part.outcome = Outcome.DONE
                self._tell_end(part.task, part.outcome.word, began)
        return any(part.done for part in red)

    def _tell_end(self, task: PlanTask, status: str, began: str) -> None:
        self._emit(TaskEnded(id=task.id, title=task.title, status=status), began)

    async def _do(self, part: PlanPart, request: str, parent: str, text: str) -> None:
        box, own = self.toolbox, NOTHING_WANTED
        try:
            part.text = await self._converse(
                request, "agent", parent, box, part.progress, text, part
            )
            if self._judge(part.progress, None) is Outcome.DONE:
                own = await self._own_checks(part.task, parent)
        except EverContextError as error:
            part.error = error
            if isinstance(error, LimitHit):
                self._emit(error.event, parent)
        # Not before its checks ended: a part that is stopped among them is not done.
        red = own.verdict == "red"
        part.outcome = Outcome.RED if red else self._judge(part.progress, part.error)

    def _judge(self, progress: Progress, error: EverContextError | None) -> Outcome:
        return judge(progress, error, attended=self.caller.door is Door.CHAT)

    async def _is_green(self, task: PlanTask, parent: str) -> bool:
        return (await self._own_checks(task, parent)).verdict in GREEN

    async def _own_checks(self, task: PlanTask, parent: str) -> Findings:
        """Run the checks that the plan asks for after this task."""
        if not task.checks or self.caller.mode is not Mode.AGENT:
            return NOTHING_WANTED
        caller = dataclasses.replace(self.caller, parent=parent)
        async with self._turnstile:
            findings = [
                await self._in_time(run_own([command], self.toolbox, self.events, caller))
                for command in task.checks
            ]
        writes = self._progress().writes
        self._own |= {
            c: (writes, finding) for c, finding in zip(task.checks, findings, strict=True)
        }
        return together(findings)

    async def _in_time(self, work: Awaitable[T]) -> T:
        """Wait for work within the time limit of the task."""
        try:
            async with asyncio.timeout(self._meter.seconds_left):
                return await work
        except TimeoutError:
            raise self._meter.out_of_time() from None

    async def _converse(
        self,
        request: str,
        role: str,
        began: str,
        toolbox: Toolbox,
        progress: Progress,
        task: str | None = None,
        part: PlanPart | None = None,
    ) -> str:
        """Let the model work on the request until it answers; the conversation keeps it."""
        hints = {
            "role": role,
            "task": task or request,
            "root": self.surroundings.root_name,
            "tree": tuple(self.surroundings.tree),
        }
        # What begins afresh has seen nothing of what another part was shown.
        view = View() if self.conversation is None else self.view
        loop = Loop(
            model=self.model,
            toolbox=toolbox,
            events=self.events,
            caller=dataclasses.replace(self.caller, parent=began, view=view),
            meter=self._meter,
            hints=hints,
            effort=self.effort,
            price=self.price,
            remember=self.remember,
            window=self.window,
            progress=progress,
            may_stop=self._may_stop(role),
            beside=self._beside(part),
        )
        mode = self.caller.mode
        prompt = brief(self.surroundings, part_in(mode), mode)
        reminders = [message for message in (self.reminder, self._advice) if message]
        words = user(request)
        if role == "agent" and self.images:
            words = dataclasses.replace(words, images=self.images)
        history = [prompt, *reminders, *(self.conversation or ()), words]
        try:
            await self.remember(history[-1])
            return await loop.run(history)
        finally:
            if self.conversation is not None:
                self.conversation[:] = history[1 + len(reminders) :]

    def _may_stop(self, role: str) -> MayStop:
        event = "Stop" if role == "agent" and not self._of_several() else "SubagentStop"
        return partial(self._hooked.may_stop, event)

    def _of_several(self) -> bool:
        return self._following is not None and len(self._following.plan.tasks) > 1

    async def _ask_to_stop(self, began: str) -> None:
        """Where a plan had several tasks, its end is the one that counts."""
        answer = "\n\n".join(part.text for part in self._parts() if part.text)
        if self._of_several() and (more := await self._hooked.may_stop("Stop", answer)):
            await self._converse(more, "stop", began, self.toolbox, self._mended)

    def _beside(self, part: PlanPart | None) -> Beside | None:
        following = self._following
        if part is None or following is None or following.width == 1:
            return None
        return Beside(self._turnstile, lambda path: following.claimed(path, part.task))

    def _begin(self, text: str) -> str:
        caller = self.caller
        task = Task(
            text=text,
            root=self.root,
            model=self.model.info.name,
            mode=caller.mode,
            door=caller.door,
            session=caller.session,
        )
        began = self.events.emit(task, trace_id=caller.trace_id, parent=caller.parent).id
        if self.model.info.notice:
            self._emit(Notice(level="info", text=self.model.info.notice), began)
        return began

    async def _end(self, began: str, error: EverContextError | None) -> TaskReport:
        if await self._background.settle() and self._findings is not NOTHING_WANTED:
            self._findings = CHANGED_SINCE
        parts, progress = self._parts(), self._progress()
        failed = next((part for part in parts if not part.done), None)
        error = error or (failed.error if failed else None)
        outcome = outcome_of(error) if error else (failed.outcome if failed else Outcome.DONE)
        if progress.refusals and outcome in OVERRULED:
            outcome = Outcome.REFUSED
        if outcome is Outcome.DONE and self._findings.verdict == "red":
            outcome = Outcome.RED
        changed, back = await self._rolled_back(outcome, began)
        answer = "\n\n".join(part.text for part in parts if part.text)
        meter = self._meter
        really = self.caller.mode is Mode.AGENT and not back
        checked = really and (bool(self._changed()) or self._findings.required)
        reason = str(error) if error else unsaid(outcome, progress)
        chosen = outcome is Outcome.CANCELLED or (not error and own_refusal(outcome, progress))
        skipped = len(self._following.skipped()) if self._following else 0
        final = Final(
            status=outcome.word,
            text=answer,
            exit_code=int(outcome),
            turns=meter.answered,
            duration_ms=round(meter.seconds * 1000),
            input_tokens=meter.usage.input_tokens,
            output_tokens=meter.usage.output_tokens,
            cached_tokens=meter.usage.cached_tokens,
            cost_usd=meter.cost,
            error=None if chosen else reason,
            changed=changed,
            not_undoable=tuple(path for path in changed if path in progress.not_undoable),
            note=reason if chosen else self._note(outcome, progress, checked=checked),
            verified=self._findings.verdict if checked else None,
            tasks_done=sum(part.done for part in parts),
            tasks=len(parts) + skipped,
            rolled_back=back,
        )
        self._emit(final, began)
        return TaskReport(self.caller.trace_id, outcome, answer, error, final)

    def _note(self, outcome: Outcome, progress: Progress, *, checked: bool) -> str | None:
        """Return the details that the outcome alone does not say."""
        parts = [self._findings.reason] if checked else []
        parts += [self._background.note, progress.undo_note]
        if outcome is Outcome.DONE:
            parts.append(shortcomings(progress, attended=self.caller.door is Door.CHAT))
        return "; ".join(part for part in parts if part) or None

    async def _rolled_back(self, outcome: Outcome, began: str) -> Standing:
        """The files that stay changed, and the files that were reverted."""
        changed = self._changed()
        if outcome is Outcome.DONE or self.rollback is None or not changed:
            return changed, ()
        return await roll_back(self.rollback, changed, lambda body: self._emit(body, began))

    def _parts(self) -> list[PlanPart]:
        return [*self._parts_outside, *(self._following.in_order() if self._following else ())]

    def _progress(self) -> Progress:
        """The progress of all parts, in the order of the plan."""
        total = Progress()
        for part in self._parts():
            total.add(part.progress)
        total.refusals += self._mended.refusals
        total.add_changes(self._mended)
        total.changed |= {path: real for path, real in self._hooked.changed.items() if real}
        return total

    def _changed(self) -> tuple[str, ...]:
        files = dict.fromkeys(self.changed_before, True) | self._progress().changed
        return tuple(path for path, real in files.items() if real)

    def _emit(self, body: Body, began: str) -> str:
        return self.events.emit(body, trace_id=self.caller.trace_id, parent=began).id
