from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import EVERCONTEXT, evercontext


@pytest.mark.parametrize(
    ("option", "value"),
    [("--timeout", "nan"), ("--timeout", "inf"), ("--max-budget-usd", "nan"), ("--timeout", "0")],
)
def test_a_number_that_is_none_is_bad_usage(tmp_path: Path, option: str, value: str) -> None:
    ended = evercontext("run", "--task", "x", option, value, cwd=tmp_path)
    assert ended.code == 64
    assert ended.err.count("error: ") == 1


@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_two_forms_of_output_contradict_each_other(tmp_path: Path, form: str) -> None:
    ended = evercontext("run", "--task", "x", "--json", "--output-format", form, cwd=tmp_path)
    assert ended.code == 64
    assert f"--json and --output-format {form} contradict" in ended.err


@pytest.fixture
def silent_server() -> Iterator[tuple[int, threading.Event]]:
    """A model server that takes every request and never answers; set once a model is asked."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    if connection.recv(100).startswith(b"POST"):
                        asked.set()
            except OSError:
                return

        worker = threading.Thread(target=accept, daemon=True)
        worker.start()
        yield int(listener.getsockname()[1]), asked
        listener.shutdown(socket.SHUT_RDWR)
        worker.join(10)
        for connection in kept:
            connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_ctrl_c_is_told_once(
    tmp_path: Path, form: str, silent_server: tuple[int, threading.Event]
) -> None:
    port, asked = silent_server
    (tmp_path / "project").mkdir()
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "k" * 20,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
    }
    arguments = ["run", "--task", "x", "--model", "openai:gpt-x", "--output-format", form]
    with subprocess.Popen(
        [EVERCONTEXT, *arguments],
        cwd=tmp_path / "project",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert asked.wait(60)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    if form == "text":
        # V6: a person's own Ctrl-C is no error.
        assert err.count("note: stopped by the user") == 1
        assert "error: " not in err
        return
    results = [line for line in map(json.loads, out.splitlines()) if line["type"] == "result"]
    assert [(one["outcome"], one["exit_code"]) for one in results] == [("cancelled", 130)]
