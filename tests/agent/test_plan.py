from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.agent.plan import MOST_TASKS, implicit, parse, validate
from evercontext.errors import InvalidPlan

HALF_A_CHARACTER = r'{"tasks": [{"id": "a", "title": "\ud800"}]}'


def task(id: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "title": f"do {id}", "depends_on": list(needs), **more}


@pytest.mark.contract("E52")
def test_tasks_come_in_dependency_order_and_otherwise_as_written() -> None:
    plan = validate({"version": 1, "tasks": [task("c", "b"), task("a"), task("b", "a"), task("d")]})
    assert [t.id for t in plan.in_order()] == ["a", "b", "c", "d"]


@pytest.mark.contract("E52")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "list named tasks"),
        ({"tasks": {}}, "list named tasks"),
        ({"tasks": []}, "1 to 50 tasks"),
        ({"tasks": [task("a")] * (MOST_TASKS + 1)}, "1 to 50 tasks"),
        ({"version": 2, "tasks": [task("a")]}, "version 2 is not known"),
        ({"tasks": ["a"]}, r"tasks\[0\] is not an object"),
        ({"tasks": [{"id": "a"}]}, "needs a text named title"),
        ({"tasks": [task("a", surprise=1)]}, "unknown key 'surprise'"),
        ({"tasks": [task("a", on_error="ignore")]}, "on_error must be one of"),
        ({"tasks": [task("a", files="main.py")]}, "files must be a list"),
        ({"tasks": [task("a", files=["/etc/passwd"])]}, "'/etc/passwd' is not inside the root"),
        ({"tasks": [task("a", files=["x/../.."])]}, "'x/../..' is not inside the root"),
        ({"tasks": [task("a"), task("a")]}, "'a' is used more than once"),
        ({"tasks": [task("a", "z")]}, "depends on 'z'"),
        ({"tasks": [task("a", "b"), task("b", "a"), task("c")]}, "wait for each other: a, b"),
        ({"tasks": [task("a", "a")]}, "wait for each other: a"),
    ],
)
def test_a_plan_that_does_not_match_is_refused_readably(data: Any, said: str) -> None:
    with pytest.raises(InvalidPlan, match=said):
        validate(data)


def test_every_reason_is_given_at_once() -> None:
    with pytest.raises(InvalidPlan, match=r"tasks\[0\] needs.*; tasks\[1\]\.on_error"):
        validate({"tasks": [{"id": "", "title": "x"}, task("b", on_error="?")]})


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here is it:\n{}\nGood luck"])
def test_a_plan_is_read_out_of_what_a_model_writes(around: str) -> None:
    text = around.replace("{}", json.dumps({"tasks": [task("a")]}))
    assert parse(text).tasks[0].id == "a"


@pytest.mark.parametrize("text", ["", "no json", "{", "{" * 100_000, HALF_A_CHARACTER])
def test_anything_else_is_an_invalid_plan(text: str) -> None:
    with pytest.raises(InvalidPlan):
        parse(text)


def test_an_implicit_plan_is_the_task_itself() -> None:
    assert [t.title for t in implicit("作る").tasks] == ["作る"]


@pytest.mark.contract("E45", "E52")
@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_any_plan_is_ordered_or_refused_and_always_the_same(needs: list[list[int]]) -> None:
    size = len(needs)
    tasks = [task(str(n), *[str(m % size) for m in wanted]) for n, wanted in enumerate(needs)]
    try:
        plan = validate({"tasks": tasks})
    except InvalidPlan:
        with pytest.raises(InvalidPlan, match="wait for each other"):
            validate({"tasks": tasks})
        return
    order = [t.id for t in plan.in_order()]
    for t in plan.tasks:
        assert all(order.index(needed) < order.index(t.id) for needed in t.depends_on)
    assert validate(plan.to_json()) == plan
