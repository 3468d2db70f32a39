from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evercontext.agent.plan import PlanTask, TaskPlan
from evercontext.agent.plan_schedule import Schedule


def plan(*tasks: tuple[str, str, str]) -> TaskPlan:
    return TaskPlan(
        tuple(
            PlanTask(i, i, depends_on=tuple(needs), files=tuple(files.split()))
            for i, needs, files in tasks
        )
    )


def begun(schedule: Schedule) -> str:
    found = ""
    while task := schedule.begin():
        found += task.id
    return found


def test_tasks_of_different_files_run_together_and_others_wait() -> None:
    schedule = Schedule(plan(("a", "", "x.py"), ("b", "", "y.py"), ("c", "", "x.py")), 3)
    assert begun(schedule) == "ab"
    schedule.end(schedule.running[1], done=True)
    assert begun(schedule) == ""
    schedule.end(schedule.running[0], done=True)
    assert begun(schedule) == "c"


def test_a_task_that_names_no_file_runs_alone() -> None:
    schedule = Schedule(plan(("a", "", ""), ("b", "", "y.py")), 3)
    assert begun(schedule) == "a"


def test_a_pattern_a_directory_and_another_spelling_are_the_same_place() -> None:
    one = PlanTask("a", "a", files=("src/App.py",))
    assert one.disjoint(PlanTask("b", "b", files=("src/other.py",)))
    for same in ("src", "./src/app.py", "src\\App.py", "src/*.py", "."):
        assert not one.disjoint(PlanTask("b", "b", files=(same,))), same
    assert PlanTask("a", "a", files=("app/[id]/page.tsx",)).disjoint(one)


def test_nothing_overtakes_a_waiting_task_of_the_same_files() -> None:
    schedule = Schedule(plan(("a", "", "x.py"), ("b", "a", "y.py"), ("c", "", "y.py")), 3)
    assert begun(schedule) == "a"


def test_what_needs_a_failed_task_is_never_begun_and_holds_nobody_up() -> None:
    tasks = (("a", "", "x"), ("b", "a", "y"), ("c", "b", "z"), ("d", "", "z"))
    schedule = Schedule(plan(*tasks), 3)
    assert begun(schedule) == "a"
    schedule.end(schedule.running[0], done=False)
    assert begun(schedule) == "d"
    schedule.end(schedule.running[0], done=True)
    assert [task.id for task in schedule.skipped()] == ["b", "c"]


def test_one_at_a_time_is_the_order_of_the_plan() -> None:
    schedule = Schedule(plan(("c", "b", "1"), ("a", "", "2"), ("b", "a", "3"), ("d", "", "4")))
    order = ""
    while task := schedule.begin():
        assert schedule.begin() is None
        order += task.id
        schedule.end(task, done=True)
    assert order == "abcd"


@given(st.data())
def test_whatever_the_plan_every_task_runs_after_its_needs_and_apart_from_its_files(
    data: st.DataObject,
) -> None:
    ids = "abcdefgh"
    made = plan(
        *(
            (
                i,
                "".join(data.draw(st.sets(st.sampled_from(ids[:n]) if n else st.nothing()))),
                " ".join(data.draw(st.sets(st.sampled_from("xyz"), max_size=2))),
            )
            for n, i in enumerate(ids)
        )
    )
    schedule, done = Schedule(made, 3), set[str]()
    while len(done) < len(ids):
        begun(schedule)
        assert schedule.running
        for task in schedule.running:
            assert done.issuperset(task.depends_on)
            others = [other for other in schedule.running if other is not task]
            assert all(task.disjoint(other) for other in others)
        ended = data.draw(st.sampled_from(schedule.running))
        schedule.end(ended, done=True)
        done.add(ended.id)
