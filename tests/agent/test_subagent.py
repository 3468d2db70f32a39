"""A7: a sub-agent has its own conversation, a share of the budget, and no right of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext import testing
from evercontext.agent.subagent import MOST_TURNS, task_tool
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun
from evercontext.agent.task_limits import Meter, TaskLimits
from evercontext.domain.event import Event, Final, ModelReply, Step, StepResult, TextPiece
from evercontext.domain.model import Usage
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door, Effect, Mode, ToolResult
from evercontext.errors import NotFound, PolicyError
from evercontext.events.log import EventLog
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, ask_for_writes
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


class Bench:
    """A task whose model and sub-agent are scripted, with one tool that writes."""

    def __init__(self, tmp_path: Path, mode: Mode = Mode.AGENT) -> None:
        self.tmp_path, self.mode = tmp_path, mode
        self.log, self.events = EventLog(tmp_path / "traces"), list[Event]()
        self.log.subscribe(self.events.append)
        self.notes: list[str] = []
        self.questions: list[str] = []

        @tool(Effect.WRITE)
        async def note(text: str) -> ToolResult:
            """Keep a note."""
            self.notes.append(text)
            return ToolResult("kept")

        self.tools = [note, task_tool()]

    async def ask(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self.questions.append(question.tool.name)
        return ApprovalAnswer(False, "you")

    async def run(
        self, *turns: dict[str, object], gate: Gate | None = None, limits: TaskLimits | None = None
    ) -> tuple[Outcome, str]:
        run = TaskRun(
            model=testing.scripted_model(self.tmp_path / "s.jsonl", list(turns)),
            toolbox=Toolbox(self.tools, self.log, gate),
            events=self.log,
            caller=Caller("t", Door.RUN, self.mode),
            surroundings=Surroundings("p", ("a.py",)),
            root="/p",
            limits=limits or TaskLimits(),
        )
        report = await run.run("the whole task")
        self.log.close()
        return report.outcome, report.text

    def bodies(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event.body, kind)]


async def test_it_works_apart_and_reports(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    usage = {"input_tokens": 10, "output_tokens": 1}
    outcome, text = await bench.run(
        {"tool_calls": [call("task", request="Count the notes.")], "usage": usage},
        {"role": "subagent", "tool_calls": [call("note", text="mine")], "usage": usage},
        {"role": "subagent", "text": "There are 3.", "usage": usage},
        {"when": "There are 3.", "text": "Three notes.", "usage": usage},
    )
    assert (outcome, text) == (Outcome.DONE, "Three notes.")
    assert bench.notes == ["mine"]
    steps = bench.bodies(Step)
    assert [event.body.tool for event in steps] == ["task", "note"]  # type: ignore[attr-defined]
    assert steps[1].parent == steps[0].id, "its steps stand below the step that began it"
    replies = bench.bodies(ModelReply)
    assert [event.parent == steps[0].id for event in replies] == [False, True, True, False]
    streamed = "".join(event.body.text for event in bench.bodies(TextPiece))  # type: ignore[attr-defined]
    assert streamed == "Three notes.", "its words are not the answer"


async def test_it_may_do_nothing_that_its_parent_may_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.run(
        {"tool_calls": [call("task", request="Write.")]},
        {"role": "subagent", "tool_calls": [call("note", text="x")]},
        {"role": "subagent", "text": "I was refused."},
        {"text": "Refused."},
        gate=Gate(ask_for_writes, bench.ask),
    )
    assert (bench.notes, bench.questions) == ([], ["note"])


async def test_in_plan_mode_it_writes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Mode.PLAN)
    await bench.run(
        {"tool_calls": [call("task", request="Write.")]},
        {"role": "subagent", "tool_calls": [call("note", text="x")]},
        {"role": "subagent", "text": "It is plan mode."},
        {"text": "Planned."},
    )
    assert bench.notes == []


async def test_it_has_no_sub_agents(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.run(
        {"tool_calls": [call("task", request="Go.")]},
        {"role": "subagent", "tool_calls": [call("task", request="Deeper.")]},
        {"role": "subagent", "text": "I must do it myself."},
        {"text": "Done."},
    )
    results = [event.body for event in bench.bodies(StepResult)]
    inner = [body for body in results if body.tool == "task" and not body.ok]  # type: ignore[attr-defined]
    assert [body.error for body in inner] == ["unknown_tool"]  # type: ignore[attr-defined]


async def test_what_it_spends_is_spent_by_the_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    usage = {"input_tokens": 60, "output_tokens": 0}
    outcome, _ = await bench.run(
        {"tool_calls": [call("task", request="Go.")], "usage": usage},
        {"role": "subagent", "tool_calls": [call("note", text="x")], "usage": usage},
        {"role": "subagent", "text": "never reached", "usage": usage},
        {"when": "did not finish", "text": "It did not finish.", "usage": usage},
        limits=TaskLimits(tokens=170),
    )
    assert outcome is Outcome.FAILED, "V6: nobody finished what it had begun"
    assert bench.notes == ["x"]


def test_a_share_counts_for_both() -> None:
    meter = Meter(TaskLimits(turns=50, tokens=1000, usd=1.0))
    meter.add(Usage(100, 100), 0.2)
    share = meter.share(MOST_TURNS, 0.5)
    share.add(Usage(300, 100), 0.4)
    assert share.used_up()
    assert not meter.used_up()
    assert meter.usage == Usage(400, 200)
    assert meter.cost == pytest.approx(0.6)


async def test_nobody_else_has_one(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "traces")
    box = Toolbox([task_tool()], log)
    result = await box.call("task", {"request": "x"}, Caller("t", Door.MCP))
    assert isinstance(result.error, PolicyError)
    log.close()


async def test_what_it_left_undone_the_task_left_undone(tmp_path: Path) -> None:
    """V6: a sub-agent whose only call had failed left a task that was done, exit 0."""
    bench = Bench(tmp_path)

    @tool(Effect.WRITE)
    async def save(path: str) -> ToolResult:
        """Save a file."""
        raise NotFound(f"{path} is not there")

    bench.tools = [save, task_tool()]
    outcome, _ = await bench.run(
        {"tool_calls": [call("task", request="Save it.")]},
        {"role": "subagent", "tool_calls": [call("save", path="a")]},
        {"role": "subagent", "text": "I could not."},
        {"text": "All done!"},
    )
    assert outcome is Outcome.FAILED
    (final,) = (event.body for event in bench.bodies(Final))
    assert "save failed and the task stayed undone" in (final.error or "")  # type: ignore[attr-defined]
    assert final.turns == 4, "its turns count, as its tokens do"  # type: ignore[attr-defined]


BROKEN: dict[str, object] = {"role": "subagent", "error": "model_refused"}
TOOK: dict[str, object] = {"tool_calls": [call("task", request="Save it.")]}


@pytest.mark.contract("E35")
@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        ([], Outcome.FAILED),
        ([{"tool_calls": [call("note", text="done by hand")]}], Outcome.DONE),
        ([TOOK, {"role": "subagent", "text": "Saved."}], Outcome.DONE),
    ],
    ids=["nothing followed", "its caller did it", "a second one did it"],
)
async def test_one_that_failed_left_its_work_undone(
    tmp_path: Path, after: list[dict[str, object]], outcome: Outcome
) -> None:
    """V6: a run whose only acting call was a sub-agent that failed was done, exit 0."""
    bench = Bench(tmp_path)
    ended, _ = await bench.run(TOOK, BROKEN, *after, {"text": "All done!"})
    assert ended is outcome
    (final,) = (event.body for event in bench.bodies(Final))
    undone = "task failed and the task stayed undone" in (final.error or "")  # type: ignore[attr-defined]
    assert undone == (outcome is Outcome.FAILED)


async def test_where_nothing_may_be_changed_the_answer_makes_it_good(tmp_path: Path) -> None:
    outcome, _ = await Bench(tmp_path, Mode.PLAN).run(TOOK, BROKEN, {"text": "The plan: …"})
    assert outcome is Outcome.DONE
