"""Events → JSON on stdout, for programs that drive a run.

``stream-json`` writes one object per line as things happen; ``json`` writes one object at the
end, the same one that ends the stream, with the changes in it. Names follow what other agents
already send: init, message, plan, task, tool_use, tool_result, file_change, command, verification,
error, rollback, result.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from evercontext.cli.failure import SCHEMA_VERSION
from evercontext.cli.terminal import Screen
from evercontext.domain.event import (
    Diff,
    Event,
    Final,
    Limit,
    ModelReply,
    Notice,
    Plan,
    RepairAttempt,
    Retry,
    RolledBack,
    Step,
    StepResult,
    Task,
    TaskBegan,
    TaskEnded,
    Verification,
)
from evercontext.domain.outcome import Outcome

Object = dict[str, Any]


class JsonView:
    """Shows one task to a program."""

    def __init__(
        self, out: Screen, trace_id: str, *, stream: bool, session_id: str | None = None
    ) -> None:
        self._out, self._trace_id, self._stream = out, trace_id, stream
        self._session_id = session_id
        self._task: Task | None = None
        self._steps: dict[str, Step] = {}
        self._calls = 0
        self._changes: list[Object] = []
        self._repairs: list[Object] = []
        self._settled: int | None = None
        """How many of the changes were there to stay, before what a repair has on trial."""
        self._tried = 0
        self._on_trial = False
        """Whether a repair was tried since they were counted."""
        self._tasks: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Take one event of the log."""
        if event.trace_id != self._trace_id:
            return
        for fields in self._objects(event):
            if self._stream or fields["type"] == "result":
                head = {"type": fields.pop("type"), "timestamp": event.at}
                self._write({**head, "schema_version": SCHEMA_VERSION, **fields})

    def pause(self) -> None:
        """Nothing is ever left unfinished here."""

    def _write(self, fields: Object) -> None:
        line = json.dumps(fields, ensure_ascii=False, default=str)
        # A lone surrogate of a model must not break the stream.
        self._out.write(line.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")

    def _objects(self, event: Event) -> Iterator[Object]:
        match event.body:
            case Task() as task:
                self._task = task
                yield from _begin(task, event.trace_id, self._session_id)
            case ModelReply(text=text) if text.strip():
                yield {"type": "message", "role": "assistant", "content": text}
            case Step() as step:
                self._steps[event.id] = step
                self._calls += 1
                yield _use(step, event.id)
            case StepResult() as result:
                yield from _results(result, event.parent, self._steps.get(event.parent or ""))
            case Diff() as diff:
                change = _change(diff)
                self._changes.append(change)
                yield {"type": "file_change", "tool_id": event.parent, **change}
            case Verification() as check:
                if self._settled is None:
                    self._settled = self._tried = len(self._changes)
                yield {"type": "verification", **_check(check)}
            case RepairAttempt() as attempt:
                yield self._repair(attempt)
            case Plan() | TaskBegan() | TaskEnded() as part:
                yield from self._part(part)
            case RolledBack(restored=restored, removed=removed, kept=kept, undo=undo):
                done = {"restored": list(restored), "removed": list(removed)}
                yield {"type": "rollback", **done, "kept": list(kept), "undo": undo}
            case Notice() | Retry() | Limit() as said:
                yield _aside(said)
            case Final() as final:
                yield self._result(final)

    def _part(self, part: Plan | TaskBegan | TaskEnded) -> Iterator[Object]:
        match part:
            case Plan(tasks=tasks, source=source, finished=finished):
                self._tasks = {str(task["id"]): "waiting" for task in tasks}
                self._tasks |= dict.fromkeys(finished, "done")
                yield {"type": "plan", "source": source, "tasks": list(tasks)}
            case TaskBegan(id=id, title=title):
                self._settle()
                yield {"type": "task", "id": id, "title": title, "status": "began"}
            case TaskEnded(id=id, title=title, status=status):
                self._tasks[id] = status
                yield {"type": "task", "id": id, "title": title, "status": status}

    def _settle(self) -> None:
        """A repair ends before the next task begins: what that changes is no trial."""
        if self._on_trial:
            del self._changes[self._settled :]
        self._settled, self._on_trial = None, False

    def _repair(self, attempt: RepairAttempt) -> Object:
        self._on_trial = True
        if not attempt.kept:
            del self._changes[self._tried :]
        self._tried = len(self._changes)
        if attempt.step == "better":
            self._settled = self._tried
        self._repairs.append(dataclasses.asdict(attempt))
        return {"type": "repair", **self._repairs[-1]}

    def _result(self, final: Final) -> Object:
        fields: Object = {} if self._stream else {"changes": self._changes}
        if self._repairs and not self._stream:
            fields = {"changes": self._changes[: self._settled], "repairs": self._repairs}
        if final.tasks > 1:
            fields["tasks"] = [{"id": id, "status": how} for id, how in self._tasks.items()]
        return {
            "type": "result",
            **_verdict(final),
            "result": final.text,
            "session_id": self._session_id or self._trace_id,
            "trace_id": self._trace_id,
            "model": self._task.model if self._task else None,
            "num_turns": final.turns,
            "tool_calls": self._calls,
            "duration_ms": final.duration_ms,
            "total_cost_usd": final.cost_usd,
            "usage": {
                "input_tokens": final.input_tokens,
                "output_tokens": final.output_tokens,
                "total_tokens": final.input_tokens + final.output_tokens,
            },
            "files_changed": list(final.changed),
            "files_rolled_back": list(final.rolled_back),
            "tasks_total": final.tasks,
            "tasks_done": final.tasks_done,
            "partial": 0 < final.tasks_done < final.tasks,
            "verified": final.verified,
            **fields,
        }


def _begin(task: Task, trace_id: str, session_id: str | None) -> Iterator[Object]:
    yield {
        "type": "init",
        "session_id": session_id or trace_id,
        "trace_id": trace_id,
        "model": task.model,
        "root": task.root,
        "mode": str(task.mode),
    }
    yield {"type": "message", "role": "user", "content": task.text}


def _use(step: Step, step_id: str) -> Object:
    parameters = dict(step.arguments)
    return {
        "type": "tool_use",
        "tool_name": step.tool,
        "tool_id": step_id,
        "parameters": parameters,
        **_apart(step),
    }


def _apart(step: Step) -> Object:
    """Return what sets a call apart from one on the present state, in the sandbox."""
    facts = {"state": step.state, "access": step.access}
    return {name: value for name, value in facts.items() if value}


def _results(result: StepResult, step_id: str | None, step: Step | None) -> Iterator[Object]:
    status = "success" if result.ok else "error"
    error = None if result.ok else {"code": result.error, "message": result.text}
    yield {
        "type": "tool_result",
        "tool_name": result.tool,
        "tool_id": step_id,
        "status": status,
        "output": result.text if result.ok else None,
        "error": error,
        "duration_ms": result.duration_ms,
        "truncated": result.truncated,
        **(_apart(step) if step else {}),
    }
    if step and "execute" in step.effects:
        command = step.arguments.get("command", step.tool)
        ended = {"status": status, "exit_code": result.exit_code}
        yield {"type": "command", "tool_id": step_id, "command": command, **ended, **_apart(step)}


def _change(diff: Diff) -> Object:
    same = not diff.diff and diff.kind == "changed"
    return {
        "path": diff.path,
        "kind": "unchanged" if same else diff.kind,
        "added": diff.added,
        "removed": diff.removed,
        "diff": diff.diff,
        "applied": diff.applied,
    }


def _check(check: Verification) -> Object:
    return {
        "kind": check.kind,
        "command": list(check.command),
        "exit_code": check.exit_code,
        "summary": check.summary,
        "counts": dict(check.counts),
        "verdict": check.verdict,
    }


def _aside(remark: Notice | Retry | Limit) -> Object:
    match remark:
        case Notice(level="info", text=text):
            return {"type": "message", "role": "system", "content": text}
        case Notice(level=level, text=text):
            return {"type": "error", "severity": level, "message": text}
        case Retry(reason=reason):
            return {"type": "error", "severity": "warning", "message": reason}
        case Limit(kind=kind, allowed=allowed):
            return {"type": "error", "severity": "error", "message": f"limit: {kind} {allowed:g}"}


def _verdict(final: Final) -> Object:
    failed = final.exit_code != Outcome.DONE
    return {
        "status": "error" if failed else "success",
        "is_error": failed,
        "outcome": final.status,
        "exit_code": final.exit_code,
        "error": {"code": final.status, "message": final.error or final.note, "fix": None}
        if failed
        else None,
        "note": final.note,
    }
