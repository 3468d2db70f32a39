"""Define plans, schema version 1: tasks, dependencies, and the reaction to a failure.

::

    {"version": 1, "tasks": [
        {"id": "model", "title": "Add the User entity", "kind": "edit", "depends_on": [],
         "on_error": "stop", "files": ["app/user.py"], "checks": ["python -m pytest"]}]}

Only ``id`` and ``title`` are needed; ``task`` beside ``tasks`` says what the plan is for. A plan
that does not match is refused with every reason.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evercontext.errors import InvalidPlan

VERSION = 1
MOST_TASKS = 50
ON_ERROR = ("stop", "continue", "replan")
_OPEN = frozenset("*?")
_TOP_KEYS = {"version", "task", "tasks"}
_KEYS = {"id", "title", "kind", "depends_on", "on_error", "files", "checks", "detail"}


@dataclass(frozen=True, slots=True)
class PlanTask:
    """One step of a plan."""

    id: str
    title: str
    detail: str = ""
    kind: str = "edit"
    depends_on: tuple[str, ...] = ()
    on_error: str = "stop"
    files: tuple[str, ...] = ()
    """The files it is expected to touch."""
    checks: tuple[str, ...] = ()

    def disjoint(self, other: PlanTask) -> bool:
        """True if both say which files they touch, and these cannot be the same ones."""
        mine, others = _places(self), _places(other)
        return bool(mine and others) and not any(_meet(a, b) for a in mine for b in others)

    def to_json(self) -> dict[str, Any]:
        """The task as the schema has it."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Tasks that can be carried out: known dependencies, no cycles."""

    tasks: tuple[PlanTask, ...]
    task: str = ""
    """The purpose of the plan, if it names one."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the schema has it."""
        purpose = {"task": self.task} if self.task else {}
        return {"version": VERSION, **purpose, "tasks": [task.to_json() for task in self.tasks]}

    def in_order(self) -> tuple[PlanTask, ...]:
        """Dependencies first; otherwise in the order they were written."""
        done: dict[str, PlanTask] = {}
        waiting = list(self.tasks)
        while waiting:
            task = next(t for t in waiting if all(needed in done for needed in t.depends_on))
            waiting.remove(task)
            done[task.id] = task
        return tuple(done.values())


def implicit(text: str) -> TaskPlan:
    """Return the plan of a task without a planner: the task itself."""
    return TaskPlan((PlanTask("task", text),))


def parse(text: str) -> TaskPlan:
    """Read a plan from JSON text, with or without a Markdown fence around it."""
    start = text.find("{")
    if start < 0:
        raise InvalidPlan("the plan holds no JSON object", fix='Give {"version": 1, "tasks": […]}')
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        fix = "Look for \\ud800 to \\udfff"
        raise InvalidPlan("the plan holds half a character", fix=fix) from None
    except (ValueError, RecursionError) as problem:
        raise InvalidPlan(f"the plan is not valid JSON: {problem}") from None
    return validate(value)


def validate(data: Any) -> TaskPlan:
    """Return the plan, or raise ``InvalidPlan`` with all that is wrong with it."""
    if not isinstance(data, Mapping) or not isinstance(data.get("tasks"), list):
        raise InvalidPlan("the plan needs a list named tasks", fix="See docs/reference/plan.md")
    problems: list[str] = []
    if data.get("version", VERSION) != VERSION:
        problems.append(f"version {data['version']!r} is not known, this is version {VERSION}")
    problems += [f"unknown key {key!r}" for key in sorted(set(data) - _TOP_KEYS, key=str)]
    if not isinstance(data.get("task", ""), str):
        problems.append("task must be a text")
    if not 1 <= len(data["tasks"]) <= MOST_TASKS:
        problems.append(f"a plan has 1 to {MOST_TASKS} tasks, this one {len(data['tasks'])}")
    tasks = [_task(item, n, problems) for n, item in enumerate(data["tasks"][:MOST_TASKS])]
    if not problems:
        problems += _reference_problems(tasks) or _cycle(tasks)
    if problems:
        raise InvalidPlan(f"the plan cannot be used: {'; '.join(problems[:8])}")
    return TaskPlan(tuple(tasks), str(data.get("task", "")).strip())


def _places(task: PlanTask) -> list[str]:
    """The files in one spelling; none where a pattern leaves open which they are."""
    if any(_OPEN & set(path) for path in task.files):
        return []
    return [_plain(path).rstrip("/").casefold() for path in task.files]


def _plain(path: str) -> str:
    """One spelling of a path; the slash at its end lets ``..`` be told like what is below it."""
    return posixpath.normpath(path.replace("\\", "/")) + "/"


def _meet(first: str, other: str) -> bool:
    """True for the same file, and for a file below a directory that the other names."""
    if "." in (first, other):
        return True
    return first == other or first.startswith(f"{other}/") or other.startswith(f"{first}/")


def _task(item: Any, number: int, problems: list[str]) -> PlanTask:
    where = f"tasks[{number}]"
    if not isinstance(item, Mapping):
        problems.append(f"{where} is not an object")
        return PlanTask("", "")
    problems += [f"{where} has an unknown key {key!r}" for key in sorted(set(item) - _KEYS)]
    for key in ("id", "title"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            problems.append(f"{where} needs a text named {key}")
    if item.get("on_error", "stop") not in ON_ERROR:
        problems.append(f"{where}.on_error must be one of {', '.join(ON_ERROR)}")
    for key in ("kind", "detail"):
        if not isinstance(item.get(key, ""), str):
            problems.append(f"{where}.{key} must be a text")
    lists = {
        key: _texts(item.get(key), f"{where}.{key}", problems)
        for key in ("depends_on", "files", "checks")
    }
    outside = [path for path in lists["files"] if _plain(path).startswith(("/", "../"))]
    problems += [f"{where}.files: {path!r} is not inside the root" for path in outside]
    return PlanTask(
        id=str(item.get("id", "")).strip(),
        title=str(item.get("title", "")).strip(),
        detail=str(item.get("detail", "")),
        kind=str(item.get("kind", "edit")),
        on_error=str(item.get("on_error", "stop")),
        **lists,
    )


def _texts(value: Any, where: str, problems: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        problems.append(f"{where} must be a list of texts")
        return ()
    return tuple(value)


def _reference_problems(tasks: Sequence[PlanTask]) -> list[str]:
    ids = [task.id for task in tasks]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    problems = [f"the id {id!r} is used more than once" for id in twice]
    return problems + [
        f"{task.id!r} depends on {needed!r}, which is not in the plan"
        for task in tasks
        for needed in task.depends_on
        if needed not in ids
    ]


def _cycle(tasks: Sequence[PlanTask]) -> list[str]:
    waiting = {task.id: set(task.depends_on) for task in tasks}
    while free := [id for id, needs in waiting.items() if not needs & waiting.keys()]:
        for id in free:
            del waiting[id]
    if not waiting:
        return []
    return [f"these tasks wait for each other: {', '.join(sorted(waiting))}"]
