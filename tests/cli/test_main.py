from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext import __version__
from evercontext.cli.main import COMMANDS
from tests.cli.command import EVERCONTEXT, evercontext

HEAVY = (
    "openai",
    "anthropic",
    "ollama",
    "fastapi",
    "starlette",
    "uvicorn",
    "mcp",
    "pydantic",
    "numpy",
    "rich",
    "httpx2",
    "sqlite3",
    "asyncio",
    "hashlib",
    "tomllib",
    "xllamacpp",
)


def test_help_lists_every_command() -> None:
    shown = evercontext("--help")
    assert shown.code == 0
    for name, entry in COMMANDS.items():
        assert name in shown.out
        assert entry.help in shown.out
    assert evercontext().out == shown.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    shown = evercontext(name, "--help")
    assert shown.code == 0
    assert COMMANDS[name].help.rstrip(".") in shown.out


def test_help_loads_nothing_heavy() -> None:
    look = (
        "import sys\n"
        "from evercontext.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_version() -> None:
    assert evercontext("--version").out == f"evercontext {__version__}\n"


@pytest.mark.contract("E35")
@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("--nonsense",),
        ("run", "--nonsense"),
        ("run", "--task"),
        ("run", "--task", "x", "--max-turns", "many"),
        ("run", "--task", "x", "--output-format", "xml"),
        ("trace",),
        ("trace", "show", "a", "b"),
        ("completion", "tcsh"),
    ],
)
def test_wrong_usage_exits_64_with_one_line(arguments: tuple[str, ...]) -> None:
    ended = evercontext(*arguments)
    assert ended.code == 64
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert "--help`" in ended.err


def test_the_module_is_the_same_door() -> None:
    asked = [sys.executable, "-m", "evercontext", "--version"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert __version__ in ended.stdout


def test_a_near_command_is_named() -> None:
    assert "Did you mean 'run'?" in evercontext("rnu").err


def test_a_closed_pipe_is_quiet() -> None:
    shell = f"{EVERCONTEXT} config show --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("more", ["", "--json"])
def test_a_full_disk_behind_the_output_is_one_line(more: str) -> None:
    shell = f"{EVERCONTEXT} config show {more} > /dev/full"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in done.stderr


def test_a_full_disk_behind_the_errors_keeps_the_exit_code() -> None:
    """S2: Python alone would end with 120."""
    done = subprocess.run(
        ["bash", "-c", f"{EVERCONTEXT} rnu > /dev/full 2>&1"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (64, b"", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_stops_nothing(closed: str, tmp_path: Path) -> None:
    script = tmp_path / "turns.jsonl"
    write = {"path": "a.py", "content": "x\n", "mode": "create"}
    call = {"tool_calls": [{"name": "write_file", "arguments": write}]}
    script.write_text(f'{json.dumps(call)}\n{{"text": "Done."}}\n')
    (tmp_path / "project").mkdir()
    shell = f"{EVERCONTEXT} run --root project -t x -m scripted:{script} {closed}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"unexpected")) == (0, 0)
    assert (tmp_path / "project/a.py").read_text() == "x\n"


@pytest.mark.contract("E35")
@pytest.mark.case(136)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_command_with_their_code(number: int, code: int, tmp_path: Path) -> None:
    environment = {**os.environ, "EC_HOME": str(tmp_path)}
    (tmp_path / "traces").mkdir()
    with subprocess.Popen(
        [EVERCONTEXT, "trace", "tail"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stderr
        ready = child.stderr.readline()
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    assert child.returncode == code
    assert b"following" in ready
    assert err.count(b"\n") == 1
    assert b"Traceback" not in err


def test_a_surprise_is_one_line_and_says_how_to_see_more(tmp_path: Path) -> None:
    # A home that is a file: nothing expects it, and still nobody sees a traceback.
    home = tmp_path / "home"
    home.write_text("")
    ended = evercontext("config", "set", "max_turns", "5", env={"EC_HOME": str(home)})
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert "EC_DEBUG=1" in ended.err or str(home) in ended.err


def test_another_encoding_never_stops_the_output() -> None:
    latin = {"PYTHONIOENCODING": "latin-1", "EC_MODEL_NAME": "日本語"}
    ended = evercontext("config", "show", env=latin)
    assert ended.code == 0
    assert "\\u65e5" in ended.out
