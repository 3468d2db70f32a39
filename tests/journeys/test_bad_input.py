"""What goes wrong on ordinary days: one line that names the fix, the right code, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.command import EVERCONTEXT, Ended, evercontext, home
from tests.journeys.story import digest, script, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "kept.txt").write_text("kept\n")
    return project


@pytest.fixture
def answer(tmp_path: Path) -> str:
    return script(tmp_path / "answer.jsonl", {"text": "fine"})


def one_error(ended: Ended) -> str:
    """The single error line."""
    lines = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, ended.err
    assert "Traceback" not in ended.err
    return lines[0]


@pytest.mark.parametrize("task", ["", "   ", "\n\t"])
def test_an_empty_task(task: str, project: Path) -> None:
    ended = evercontext("run", "--task", task, cwd=project)
    assert ended.code == 64
    assert '--task "..."' in one_error(ended)
    assert evercontext("run", cwd=project).code == 64
    assert evercontext("run", cwd=project, stdin=" \n").code == 64


@pytest.mark.parametrize("given", [b"\xff\xfe", b"x" * 1_048_577])
def test_stdin_that_is_no_task(given: bytes, project: Path) -> None:
    ended = evercontext("run", cwd=project, stdin=given)
    assert ended.code == 64
    assert "stdin" in one_error(ended)


def test_a_root_that_is_missing_or_no_directory(project: Path, answer: str) -> None:
    for root in ("nowhere", "kept.txt"):
        ended = evercontext("run", "-t", "x", "-m", answer, "--root", root, cwd=project)
        assert ended.code == 1
        assert "--root" in one_error(ended)
    assert list(digest(project)) == ["kept.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_a_root_that_cannot_be_read(project: Path, answer: str) -> None:
    project.chmod(0)
    try:
        ended = evercontext("run", "-t", "x", "-m", answer, "--root", str(project))
    finally:
        project.chmod(0o755)
    assert ended.code == 1
    assert "permissions" in one_error(ended)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_a_home_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: the question whether the file is there fails already."""
    home = tmp_path / "shut"
    home.mkdir(mode=0)
    monkeypatch.setenv("EC_HOME", str(home))
    try:
        ended = evercontext("config", "show")
    finally:
        home.chmod(0o755)
    assert ended.code == 1
    assert "Check its permissions, or set EC_HOME" in one_error(ended)


@pytest.mark.case(140)
@pytest.mark.parametrize("root", ["/", "~"])
def test_a_root_that_is_far_too_wide(root: str, answer: str) -> None:
    place = str(Path(root).expanduser())
    ended = evercontext("run", "-t", "x", "-m", answer, "--root", place)
    assert ended.code == 1
    assert "--allow-wide-root" in one_error(ended)
    allowed = evercontext(
        "run", "-t", "x", "-m", answer, "--root", str(Path.home()), "--allow-wide-root"
    )
    assert allowed.code == 0, allowed.err


@pytest.mark.case(140)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is warned")
@pytest.mark.slow
def test_root_is_warned_once(project: Path, answer: str) -> None:
    first = evercontext("run", "-t", "x", "-m", answer, cwd=project)
    second = evercontext("run", "-t", "x", "-m", answer, cwd=project)
    assert first.err.count("running as root") == 1
    assert "running as root" not in second.err


@pytest.mark.parametrize("name", ["scripted:nowhere.jsonl", "embedded:gpt9", "scripted:"])
def test_an_unknown_model(name: str, project: Path) -> None:
    ended = evercontext("run", "-t", "x", "-m", name, cwd=project)
    assert ended.code == 1
    assert one_error(ended)
    told = json.loads(evercontext("run", "-t", "x", "-m", name, "--json", cwd=project).out)
    assert told["is_error"] is True


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.dumps({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def refusing_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_wrong_key(project: Path, refusing_server: str) -> None:
    key = "sk-canary-0123456789abcdef"
    ended = evercontext(
        "run",
        "-t",
        "x",
        "-m",
        "openai:gpt-4.1-nano",
        cwd=project,
        env={"OPENAI_API_KEY": key, "OPENAI_BASE_URL": refusing_server},
    )
    assert ended.code == 1
    assert "OPENAI_API_KEY" in one_error(ended)
    assert key not in ended.err


@pytest.mark.contract("E35", "E40")
def test_no_network(project: Path) -> None:
    ended = evercontext(
        "run",
        "-t",
        "x",
        "-m",
        "openai:gpt-4.1-nano",
        cwd=project,
        env={"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
    )
    assert ended.code == 75
    assert one_error(ended)
    assert list(digest(project)) == ["kept.txt"]


@pytest.mark.parametrize("content", ["{", "[]", '{"max_turns": "many"}'])
def test_a_corrupt_configuration_is_named_and_kept(
    content: str, project: Path, answer: str
) -> None:
    home().mkdir(parents=True)
    (home() / "config.json").write_text(content)
    ended = evercontext("run", "-t", "x", "-m", answer, cwd=project)
    assert ended.code == 1
    assert "config.json" in one_error(ended)
    assert (home() / "config.json").read_text() == content


def test_a_corrupt_project_file_is_named(project: Path, answer: str) -> None:
    (project / "evercontext.toml").write_text("max_turns = \n")
    ended = evercontext("run", "-t", "x", "-m", answer, cwd=project)
    assert ended.code == 1
    assert "evercontext.toml" in one_error(ended)


@pytest.mark.case(118)
@pytest.mark.slow
def test_a_half_written_database_is_put_aside_and_work_goes_on(
    project: Path, answer: str, tmp_path: Path
) -> None:
    assert evercontext("run", "-t", "first", "-m", answer, cwd=project).code == 0
    database = home() / "memory.db"
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    for leftover in home().glob("memory.db-*"):
        leftover.unlink()
    ended = evercontext("run", "-t", "second", "-m", answer, cwd=project)
    assert ended.code == 0, ended.err
    assert "damaged" in ended.err or "corrupt" in ended.err
    assert [p.read_bytes() for p in home().glob("memory.db.corrupt-*")] == [
        whole[: len(whole) // 2]
    ]
    assert "first" in evercontext("trace", "list", "--all").out
    assert "second" in evercontext("trace", "list", "--all").out


def test_a_database_of_a_newer_version_is_left_alone(project: Path, answer: str) -> None:
    assert evercontext("run", "-t", "x", "-m", answer, cwd=project).code == 0
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(home() / "memory.db")) as link, link:
        columns = [row[1] for row in link.execute("PRAGMA table_info(schema_migrations)")]
        link.execute(
            f"INSERT INTO schema_migrations ({columns[0]}, {columns[1]}) VALUES (9999, 'x')"
        )
    ended = evercontext("run", "-t", "x", "-m", answer, cwd=project)
    assert ended.code == 1
    assert "Update evercontext" in one_error(ended)


@pytest.mark.slow
@pytest.mark.case(136)
@pytest.mark.contract("E35")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_stopped_in_the_middle(number: int, code: int, project: Path, tmp_path: Path) -> None:
    class Silent(BaseHTTPRequestHandler):
        asked = threading.Event()
        over = threading.Event()

        def do_POST(self) -> None:
            self.asked.set()
            self.over.wait(200)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test-012345", "OPENAI_BASE_URL": address}
    command = [EVERCONTEXT, "run", "-t", "x", "-m", "openai:gpt-4.1-nano", "--json"]
    try:
        with subprocess.Popen(
            command,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # what runs the tests may ignore it (nohup does), and children inherit that
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        ) as child:
            assert Silent.asked.wait(120)
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
    finally:
        Silent.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
    assert child.returncode == code
    assert b"Traceback" not in err
    result = json.loads(out.splitlines()[-1])
    assert (result["is_error"], result["exit_code"]) == (True, code)
    assert list(digest(project)) == ["kept.txt"]
    listed = json.loads(evercontext("trace", "list", "--all", "--json").out)
    assert listed[0]["status"] == ("cancelled" if code == 130 else "terminated")


def test_a_script_that_makes_no_sense(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"txt": 1}\n')
    ended = evercontext("run", "-t", "x", "-m", f"scripted:{broken}", cwd=project)
    assert ended.code == 1
    assert "line 1" in one_error(ended)


def test_a_reader_that_leaves_does_not_stop_the_task(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write("a.txt", "a\n"), {"text": "x\n" * 100_000})
    shell = f"{EVERCONTEXT} run -t x -m {model} 2>/dev/null </dev/null | head -c 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell], cwd=project, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"x")
    assert (project / "a.txt").read_text() == "a\n"
