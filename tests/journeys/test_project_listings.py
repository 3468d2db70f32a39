"""F9: what is listed is this project's, in the reader's time, and people's words come first."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from evercontext.testing import tiny_repository
from tests.cli.command import evercontext
from tests.journeys.story import call, script

# As POSIX spells it: no list of time zones need be there.
TOKYO = {"TZ": "JST-9"}
JAPAN = timezone(timedelta(hours=9))
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "here", {"heron.py": "heron = 'a bird, a heron'\n"})


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "there", {"a.md": "# Herons\n\nA heron stands in water.\n"})


def local(at: str) -> str:
    """A moment of the log as somebody in Tokyo reads it."""
    return datetime.fromisoformat(at).astimezone(JAPAN).strftime("%Y-%m-%d %H:%M")


@pytest.mark.slow
def test_words_of_people_are_found_before_what_tools_returned(
    here: Path, there: Path, tmp_path: Path
) -> None:
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("read_file", path="heron.py")]},
        {"text": "It is a heron."},
    )
    evercontext("chat", "-m", model, cwd=here, stdin="where is the heron kept?\n")
    ended = evercontext("sessions", "search", "heron", cwd=here, env=TOKYO)
    assert ended.code == 0, ended.err
    heads, said = ended.out.splitlines()[::2], ended.out.splitlines()[1::2]
    assert [line.split()[0] for line in said] == ["user", "assistant", "tool"]
    assert "where is the heron kept?" in said[0]
    told = json.loads(evercontext("sessions", "search", "heron", "--json", cwd=here).out)
    # Machines get UTC, people their own time and the title.
    times = [local(message["timestamp"] + "+00:00") for message in told]
    assert [head[: len(moment)] for head, moment in zip(heads, times, strict=True)] == times
    assert all("where is the heron kept?" in head for head in heads)
    shown = evercontext("sessions", "show", "last", cwd=here, env=TOKYO).out
    (listed,) = json.loads(evercontext("sessions", "list", "--json", cwd=here).out)
    assert f"- started: {local(listed['started_at'] + '+00:00')}" in shown
    assert "UTC" not in shown.split("##")[0]
    # Another project's, only on request.
    assert evercontext("sessions", "search", "heron", cwd=there).code == 1
    assert "heron kept" in evercontext("sessions", "search", "heron", "--all", cwd=there).out
    assert str(here) in evercontext("sessions", "list", "--all", cwd=there).out


@pytest.mark.contract("E48")
@pytest.mark.slow
def test_traces_and_figures_are_those_of_this_project(
    here: Path, there: Path, tmp_path: Path
) -> None:
    for place in (here, there, there):
        model = script(tmp_path / "s.jsonl", {"text": f"Done in {place.name}."})
        evercontext("run", "-t", f"work in {place.name}", "-m", model, cwd=place)
    listed = evercontext("trace", "list", cwd=here, env=TOKYO).out
    assert ("work in here" in listed, "work in there" in listed) == (True, False)
    (told,) = json.loads(evercontext("trace", "list", "--json", cwd=here).out)
    assert MOMENT.findall(listed) == [local(told["started"])]
    assert told["started"].endswith("+00:00")
    shown = evercontext("trace", "show", cwd=here, env=TOKYO).out
    assert local(told["started"]) in shown
    assert "UTC" not in shown
    everything = json.loads(evercontext("trace", "list", "--all", "--json", cwd=here).out)
    assert len(everything) == 3
    assert "Done in here." in evercontext("trace", "show", cwd=here).out
    assert "Done in there." in evercontext("trace", "show", "--all", cwd=here).out
    for more, count in (((), 1), (("--all",), 3), (("--root", str(there)), 2)):
        figures = json.loads(evercontext("kpi", "--json", *more, cwd=here).out)
        assert figures["tasks"] == count, more


def test_evaluations_are_traces_too(here: Path, there: Path) -> None:
    assert evercontext("evaluate", "a.md", "--judge", "local", cwd=there).code in (0, 4)
    listed = evercontext("trace", "list", cwd=there).out
    assert "judged" in listed
    assert "a.md" in listed
    (told,) = json.loads(evercontext("trace", "list", "--json", cwd=there).out)
    assert (told["mode"], told["root"]) == ("evaluation", str(there.resolve()))
    assert told["status"] in ("done", "not passed")
    assert evercontext("trace", "show", told["trace_id"], cwd=there).code == 0
    nothing = evercontext("trace", "list", cwd=here)
    assert nothing.out == ""
    assert "--all shows others" in nothing.err
