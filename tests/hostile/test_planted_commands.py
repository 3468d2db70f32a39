"""X3: what a command plants does not outlive it, however it and we end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.tool import Caller, Door
from evercontext.files.policy import FilePolicy
from evercontext.process.sandbox import available
from evercontext.workspace.command_marks import FOLDER, CommandMark, settle
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.planted_files import guarded
from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.files.test_directory_walk import as_ordinary_user, place, remove_deep
from tests.journeys.story import call, script
from tests.tiers import slow

place = place
LAYERS = [finding.layer for finding in available() if finding.works]
pytestmark = pytest.mark.skipif(not LAYERS, reason="no sandbox works on this machine")
CALLER = Caller("77777777-7777-4777-8777-777777777777", Door.RUN)
PLANT = (
    "mkdir -p .vscode sub/.git/hooks src; echo x > .vscode/tasks.json; echo x > .envrc;"
    " echo x > sub/.git/hooks/pre-commit; echo x > lefthook.yml; touch src/ready; "
)
OBEYED = (".vscode", ".envrc", "sub/.git", "lefthook.yml")


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [call("run_command", command=line, **more)]}


PLANTING = command(PLANT + "sleep 600")
WAYS: dict[str, tuple[dict[str, Any], ...]] = {
    "by itself": (PLANTING,),
    "in the background": (command(PLANT + "sleep 600", background=True), command("sleep 600")),
    "by a sub-agent": (
        {"tool_calls": [call("task", request="Prepare it.")]},
        {"role": "subagent", **PLANTING},
    ),
    "in the background of a sub-agent": (
        {"tool_calls": [call("task", request="Prepare it.")]},
        {"role": "subagent", **command(PLANT + "sleep 600", background=True)},
        {"role": "subagent", **command("sleep 600")},
    ),
}
ways = pytest.mark.parametrize(
    "way", [name if name == "by itself" else slow(name) for name in WAYS]
)


def start(tmp_path: Path, *more: str, way: str = "by itself") -> subprocess.Popen[str]:
    """Start a run whose command plants files and then stays."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    model = script(tmp_path / "model", *WAYS[way], {"text": "done"})
    arguments = [EVERCONTEXT, "run", "--task", "x", "-m", model, *more]
    return subprocess.Popen(
        arguments,
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(file: Path, running: subprocess.Popen[str]) -> None:
    while not file.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)


def left(project: Path) -> list[str]:
    return [name for name in OBEYED if os.path.lexists(project / name)]


def assert_told(project: Path, err: str, way: str) -> None:
    """It is said at once; of a command that nobody waited for, at the next start at the latest."""
    if "background" in way:
        assert all(mark.suffix == ".told" for mark in (home() / FOLDER).iterdir())
        err += evercontext("undo", "--list", cwd=project).err
    assert "moved away" in err
    assert list((home() / FOLDER).iterdir()) == []


@pytest.mark.case(136)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@ways
def test_nothing_planted_outlives_a_signal(
    tmp_path: Path, number: signal.Signals, way: str
) -> None:
    with start(tmp_path, way=way) as running:
        wait_for(tmp_path / "project/src/ready", running)
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert left(tmp_path / "project") == []
    assert_told(tmp_path / "project", err, way)
    assert len(list((home() / "quarantine").glob("*/tasks.json"))) == 0
    assert len(list((home() / "quarantine").glob("*/*/tasks.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
def test_nothing_planted_outlives_the_time_limit(tmp_path: Path, way: str) -> None:
    for seconds in (4, 20, 100):
        with start(tmp_path, "--timeout", str(seconds), way=way) as running:
            out, err = running.communicate()
        assert running.returncode == 6, (out, err)
        # On a busy machine the time may be over before the command has planted anything.
        if (tmp_path / "project/src/ready").exists():
            break
    else:
        pytest.fail("the command never began")
    assert left(tmp_path / "project") == []
    assert_told(tmp_path / "project", err, way)


@pytest.mark.parametrize(
    "entrance", [("undo", "--list"), *map(slow, (("doctor",), ("mcp",), ("fix",)))]
)
@pytest.mark.slow
def test_the_next_start_puts_away_what_a_killed_one_left(
    tmp_path: Path, entrance: tuple[str, ...]
) -> None:
    project = tmp_path / "project"
    with start(tmp_path) as running:
        wait_for(project / "src/ready", running)
        running.kill()
    assert left(project) == list(OBEYED)
    assert len(list((home() / FOLDER).iterdir())) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = evercontext(*entrance, cwd=elsewhere if entrance == ("doctor",) else project)
    assert left(project) == []
    assert list((home() / FOLDER).iterdir()) == []
    assert "was cut" in done.out + done.err
    (kept,) = (home() / "quarantine").glob("*/places.txt")
    assert {Path(line.split("\t")[1]) for line in kept.read_text().splitlines()} == {
        project / name for name in OBEYED
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", [name for name in WAYS if name != "by itself"])
def test_the_next_start_puts_away_what_others_left_behind(tmp_path: Path, way: str) -> None:
    project = tmp_path / "project"
    with start(tmp_path, way=way) as running:
        wait_for(project / "src/ready", running)
        running.kill()
    assert left(project) == list(OBEYED)
    done = evercontext("undo", "--list", cwd=project)
    assert left(project) == []
    assert list((home() / FOLDER).iterdir()) == []
    assert "was cut" in done.out + done.err


@pytest.fixture(params=LAYERS)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> CommandRunner:
    (tmp_path / "project").mkdir()
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    return CommandRunner(tmp_path / "project", environment, tmp_path / "home", str(request.param))


@pytest.mark.slow
async def test_depth_hides_nothing(runner: CommandRunner) -> None:
    line = "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 9; i=$((i+1)); done; "
    outcome = await runner.run(("sh", "-c", line + "mkdir .vscode"), CALLER, timeout=60)
    assert outcome.completed.exit_code == 0, outcome.completed
    assert outcome.put_away.places == ("d/" * 1500 + ".vscode",)
    remove_deep(runner.root)


@pytest.mark.slow
async def test_depth_in_the_temporary_directory_of_a_command_is_no_error(
    runner: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratches"))
    (tmp_path / "scratches").mkdir()
    line = 'cd "$TMPDIR" && i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 9; i=$((i+1)); '
    outcome = await runner.run(("sh", "-c", line + "done; echo made $i"), CALLER, timeout=60)
    assert outcome.completed.text == "made 1500\n"
    assert list((tmp_path / "scratches").iterdir()) == []


async def test_a_repository_that_a_command_makes_is_none_afterwards(runner: CommandRunner) -> None:
    (runner.root / "docs").mkdir()
    (runner.root / "docs/config").write_text("mine\n")
    (runner.root / "src/hooks").mkdir(parents=True)
    line = "cd docs; echo 'ref: refs/heads/x' > HEAD; mkdir objects refs; mkdir ../src/hooks/.idea"
    outcome = await runner.run(("sh", "-c", line), CALLER, timeout=60)
    places = ("docs/HEAD", "docs/objects", "docs/refs", "src/hooks/.idea")
    assert outcome.put_away.places == places
    assert sorted(path.name for path in (runner.root / "docs").iterdir()) == ["config"]


async def test_what_git_resolves_is_read_only_to_a_command(runner: CommandRunner) -> None:
    root = runner.root
    (root / ".git").mkdir()
    (root / ".git/config").write_text("[core]\n\thooksPath = tools\n[include]\n\tpath = ../inc\n")
    (root / "store").mkdir()
    for name in ("objects", "refs"):
        (root / "store" / name).mkdir()
    (root / "store/HEAD").write_text("ref: refs/heads/main\n")
    (root / "tools").mkdir()
    line = "echo x > tools/pre-commit; echo x > store/config; echo x > inc; echo x > plain"
    outcome = await runner.run(("sh", "-c", line), CALLER, timeout=60)
    assert outcome.put_away.places in (("inc",), ())
    assert list((root / "tools").iterdir()) == []
    assert sorted(path.name for path in (root / "store").iterdir()) == ["HEAD", "objects", "refs"]
    assert not (root / "inc").exists()


async def test_compiled_python_that_a_command_left_is_not_run_later(runner: CommandRunner) -> None:
    cache = runner.root / "__pycache__"
    cache.mkdir()
    for name in ("old.pyc", "changed.pyc"):
        (cache / name).write_bytes(b"mine")
        os.utime(cache / name, (1, 1))
    await asyncio.sleep(0.05)
    line = (
        "cd __pycache__; echo evil > changed.pyc; echo evil > new.pyc; touch -d @1 *.pyc;"
        " mkdir ../p; mkdir ../p/__pycache__; echo evil > ../p/__pycache__/a.pyc"
    )
    outcome = await runner.run(("sh", "-c", line), CALLER, timeout=60)
    assert outcome.put_away.compiled >= 3
    assert not (cache / "changed.pyc").exists()
    assert not (cache / "new.pyc").exists()
    assert list((runner.root / "p/__pycache__").iterdir()) == []


def test_a_closed_folder_hides_nothing_from_an_ordinary_user(place: Path) -> None:
    """As an ordinary user, because the superuser can read everything."""
    place.chmod(0o777)

    def work() -> None:
        root, own_home = place / "project", place / "home"
        (root / "a/b").mkdir(parents=True)
        own_home.mkdir()
        known = guarded(root, FilePolicy()).known
        mark = CommandMark.set(own_home, root, known, 60, caches=True)
        (root / "a/b/.vscode").mkdir()
        (root / "a/b/.vscode/tasks.json").write_text("x")
        for name, mode in (("a/b/.vscode", 0o311), ("a/b", 0o311), ("a", 0o100)):
            (root / name).chmod(mode)
        done = mark.clean(own_home, FilePolicy(), {}, later=False)
        assert (done.places, done.unclean) == (("a/b/.vscode",), ())
        assert list((root / "a/b").iterdir()) == []
        assert not mark.file.exists()

    as_ordinary_user(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of somebody else")
def test_what_cannot_be_looked_at_is_not_called_clean(place: Path) -> None:
    (place / "project").mkdir()
    (place / "project/theirs").mkdir()
    (place / "project/theirs").chmod(0o703)
    (place / "home").mkdir()
    (place / "home").chmod(0o777)

    def work() -> None:
        root, own_home = place / "project", place / "home"
        known = guarded(root, FilePolicy()).known
        mark = CommandMark.set(own_home, root, known, 60, caches=True)
        done = mark.clean(own_home, FilePolicy(), {}, later=False)
        assert done.unclean == ("theirs",)
        assert "do not trust" in done.text
        assert mark.file.exists()

    as_ordinary_user(work)


@pytest.fixture
def cut_off(tmp_path: Path) -> CommandMark:
    """A mark whose process is gone."""
    (tmp_path / "project").mkdir()
    known = guarded(tmp_path / "project", FilePolicy()).known
    mark = CommandMark.set(tmp_path / "home", tmp_path / "project", known, 0, caches=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    record = json.loads(mark.file.read_text())
    record["owner"] = {**record["owner"], "pid": gone.pid}
    mark.file.write_text(json.dumps(record))
    return replace(mark, owner=record["owner"])


def test_what_the_user_made_long_after_stays(cut_off: CommandMark, tmp_path: Path) -> None:
    record = json.loads(cut_off.file.read_text())
    record["until"] = time.time_ns()
    cut_off.file.write_text(json.dumps(record))
    time.sleep(0.05)
    (cut_off.root / ".vscode").mkdir()
    (cut_off.root / ".vscode/settings.json").write_text("{}")
    assert settle(tmp_path / "home", FilePolicy(), {}) == ()
    assert (cut_off.root / ".vscode/settings.json").exists()
    assert not cut_off.file.exists()


def test_a_mark_that_cannot_be_read_is_told(cut_off: CommandMark, tmp_path: Path) -> None:
    cut_off.file.write_text('{"version": 99}')
    (notice,) = settle(tmp_path / "home", FilePolicy(), {})
    assert "was cut off" in notice
    assert settle(tmp_path / "home", FilePolicy(), {}) == ()


def test_the_mark_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    known = guarded(tmp_path / "project", FilePolicy()).known
    mark = CommandMark.set(tmp_path / "home", tmp_path / "project", known, 60, caches=True)
    (tmp_path / "project/.envrc").write_text("x")
    assert settle(tmp_path / "home", FilePolicy(), {}) == ()
    assert mark.file.exists()
    assert (tmp_path / "project/.envrc").exists()


_STARTED_HERE = """
    .pdbrc .gdbinit .lldbinit .perldb .irbrc .pryrc .Rprofile .ghci .ocamlinit .iex.exs .octaverc
    .envrc.local .config/mise/config.toml mise/conf.d/a.toml .vim/coc-settings.json .bsp/a.json
    .lsp/config.edn .luarc.json opencode.json .opencode/plugin/a.ts crush.json .qwen/settings.json
    .amazonq/mcp.json .factory/mcp.json .kilocode/mcp.json .github/hooks/a.json .theia/tasks.json
    .sl/config _darcs/prefs/defaults .repo/repo/main.py .p4config .lfsconfig
"""
STARTED_HERE = tuple(_STARTED_HERE.split())


def test_start_up_files_of_debuggers_interpreters_and_agents_are_put_away(tmp_path: Path) -> None:
    """The standard library's debugger, for one, runs the .pdbrc of the folder it is started in."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("pass\n")
    lines = [
        f"mkdir -p \"$(dirname {name})\"; echo \"open('ran', 'w')\" > {name}"
        for name in STARTED_HERE
    ]
    turn = {"tool_calls": [call("run_command", command="\n".join(lines))]}
    model = script(tmp_path / "model", turn, {"text": "done"})
    ended = evercontext("run", "--task", "x", "-m", model, cwd=project)
    assert ended.code == 0, ended.err
    assert [name for name in STARTED_HERE if os.path.lexists(project / name)] == []
    debugger = [sys.executable, "-m", "pdb", "a.py"]
    subprocess.run(debugger, cwd=project, input="q\n", text=True, capture_output=True, check=False)
    assert not (project / "ran").exists()
