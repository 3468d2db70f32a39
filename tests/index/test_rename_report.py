from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.domain.event import Renamed
from evercontext.domain.tool import Caller, Door
from evercontext.events.kpi import compute
from evercontext.events.log_reader import read, segments
from evercontext.index.rename_report import into_log
from tests.cli.command import evercontext, home


def told(traces: Path) -> list[Renamed]:
    events = [event.body for place in segments(traces) for event in read(place)]
    return [body for body in events if isinstance(body, Renamed)]


@pytest.mark.contract("E39", "E50")
def test_a_rename_that_the_index_recognises_is_an_event(tmp_path: Path) -> None:
    root = testing.tiny_repository(tmp_path / "r", {"old.py": "def f():\n    return 1\n"})
    assert evercontext("index", cwd=root).code == 0
    (root / "old.py").rename(root / "new.py")
    assert evercontext("index", cwd=root).code == 0
    assert told(home() / "traces") == [
        Renamed(old="old.py", new="new.py", found_only_under_new_path=True)
    ]


@pytest.mark.contract("E39", "E50")
def test_a_rename_is_one_event_whoever_notices_it_first(tmp_path: Path) -> None:
    """A search before the hook, then the hook: neither none nor two."""
    root = testing.tiny_repository(tmp_path / "r", {"old.py": "def fee():\n    return 1\n"})
    assert evercontext("index", cwd=root).code == 0
    assert evercontext("hook", "install", cwd=root).code == 0
    (root / "old.py").rename(root / "new.py")
    assert "new.py" in evercontext("search", "fee", cwd=root).out
    testing.git(root, "add", "-A")
    testing.git(root, "commit", "-qm", "move")
    assert evercontext("hook", "drain", cwd=root).code == 0
    traces = home() / "traces"
    assert told(traces) == [Renamed(old="old.py", new="new.py", found_only_under_new_path=True)]
    figures = json.loads(evercontext("kpi", "--json", cwd=root).out)
    assert (figures["rename_accuracy"]["hits"], figures["rename_accuracy"]["of"]) == (1, 1)


@pytest.mark.contract("E50")
async def test_a_rename_that_is_announced_is_an_event_too(tmp_path: Path) -> None:
    async with testing.house(tmp_path) as app:
        root = app.settings.root
        (root / "a.py").write_text("def first():\n    return 1\n")
        caller = Caller("t", Door.RUN)
        await app.toolbox.call("ingest", {"paths": ["a.py"]}, caller)
        (root / "a.py").rename(root / "b.py")
        pair = {"from": "a.py", "to": "b.py"}
        await app.toolbox.call("ingest", {"diff": {"renamed": [pair]}}, caller)
    traces = tmp_path / "home" / "traces"
    assert [(body.old, body.new) for body in told(traces)] == [("a.py", "b.py")]
    events = [event for place in segments(traces) for event in read(place)]
    assert compute(events).rename_accuracy.rate == 1.0


async def test_each_rename_has_a_trace_of_its_own(tmp_path: Path) -> None:
    async with testing.house(tmp_path) as app:
        heard: list[str] = []
        app.events.subscribe(lambda event: heard.append(event.trace_id))
        tell = into_log(app.events)
        tell("a", "b", True)
        tell("c", "d", False)
    assert len(set(heard)) == 2
