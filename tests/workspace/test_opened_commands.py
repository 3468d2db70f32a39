"""A3, S9: commands with network and outside the sandbox, once somebody opened it to them."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
import venv
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evercontext.access.approval_rules import parse
from evercontext.access.permissions import Permissions
from evercontext.domain.event import Approval, Event, Step
from evercontext.domain.tool import Caller, CommandAccess, Door
from evercontext.errors import ApprovalDenied, NoSandbox
from evercontext.events.log import EventLog
from evercontext.process.sandbox import available
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_tools import check_tools
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("77777777-7777-4777-8777-777777777777", Door.CHAT)
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
LAYERS = [finding.layer for finding in available() if finding.works]
sandboxed = pytest.mark.skipif(not LAYERS, reason="no sandbox works on this machine")


class QuietFiles(SimpleHTTPRequestHandler):
    """Serve a folder without a word on stderr."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index on loopback, with one package of our own."""
    folder = tmp_path / "index/simple/tiny-letter"
    folder.mkdir(parents=True)
    name = "tiny_letter-1.0-py3-none-any.whl"
    files = {
        "tiny_letter.py": "LETTER = 'a'\n",
        "tiny_letter-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-letter\n"
        "Version: 1.0\n",
        "tiny_letter-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for path, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            rows.append(f"{path},sha256={digest.decode().rstrip('=')},{len(text)}")
            wheel.writestr(path, text)
        rows.append("tiny_letter-1.0.dist-info/RECORD,,")
        wheel.writestr("tiny_letter-1.0.dist-info/RECORD", "\n".join(rows) + "\n")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    handler = partial(QuietFiles, directory=str(tmp_path / "index"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Bench:
    """A toolbox whose person gives one answer to every question."""

    runner: CommandRunner
    log: EventLog
    permissions: Permissions = field(default_factory=lambda: Permissions("/p", yes=True))
    answer: ApprovalAnswer | None = None
    questions: list[ApprovalQuestion] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    async def ask(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self.questions.append(question)
        assert self.answer is not None
        return self.answer

    async def call(self, command: str, **more: str) -> tuple[str, bool, object]:
        gate = Gate(self.permissions, self.ask) if self.answer else Gate(self.permissions)
        box = Toolbox(check_tools(self.runner), self.log, gate)
        result = await box.call("run_command", {"command": command, **more}, CALLER)
        good = result.ok and result.data["exit_code"] == 0
        return result.text, good, result.error

    def opened(self, kind: type[Step | Approval]) -> list[str | None]:
        bodies = (event.body for event in self.events)
        return [body.access for body in bodies if isinstance(body, kind)]

    def audited(self) -> list[str | None]:
        """What the audit lines of the trace say."""
        segment = self.log.segment
        assert segment is not None
        rows = [json.loads(row) for row in segment.read_text().splitlines()]
        return [row["data"]["access"] for row in rows if row["type"] == "audit"]


@pytest.fixture(params=[*LAYERS, "nowhere"])
async def bench(
    request: pytest.FixtureRequest, workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> AsyncIterator[Bench]:
    environment = {"PATH": PATH, "HOME": str(tmp_path / "user")}
    home = tmp_path / "home"
    runner = CommandRunner(place, environment, home, str(request.param), recorder=workspace)
    log = EventLog(tmp_path / "traces")
    bench = Bench(runner, log)
    stop = log.subscribe(bench.events.append)
    yield bench
    stop()
    log.close()


def only_sandboxed(bench: Bench) -> None:
    if bench.runner.sandbox == "nowhere":
        pytest.skip("needs a sandbox")


def only_without(bench: Bench) -> None:
    if bench.runner.sandbox != "nowhere":
        pytest.skip("needs a machine without a sandbox")


def fetch(index: str) -> str:
    return f"python3 -c \"from urllib.request import urlopen; urlopen('{index}').read()\""


@pytest.mark.case(68)
async def test_a_person_opens_the_network_to_one_command(bench: Bench, index: str) -> None:
    only_sandboxed(bench)
    text, good, _ = await bench.call(fetch(index))
    assert not good
    bench.answer = ApprovalAnswer(True, "you")
    text, good, _ = await bench.call(fetch(index), access="network")
    assert good, text
    assert "[ran with network]" in text
    assert bench.questions[0].requested is CommandAccess.NETWORK
    assert bench.opened(Approval) == ["network"]
    assert bench.opened(Step) == [None, "network"]
    assert bench.audited() == [None, "network"]
    _, good, _ = await bench.call(fetch(index))
    assert not good, "once is once"


async def test_the_answer_itself_opens_it(bench: Bench, index: str) -> None:
    """Asked about a plain command, the person answers "with network"."""
    only_sandboxed(bench)
    bench.permissions.yes = False
    bench.answer = ApprovalAnswer(True, "you", access=CommandAccess.NETWORK)
    text, good, _ = await bench.call(fetch(index))
    assert good, text
    assert bench.opened(Step) == ["network"]


async def test_unattended_work_needs_a_rule(bench: Bench, index: str) -> None:
    only_sandboxed(bench)
    _, _, error = await bench.call(fetch(index), access="network")
    assert isinstance(error, ApprovalDenied)
    assert "network(COMMAND *)" in str(error.fix)
    assert not any(bench.audited())
    bench.permissions.stored = [parse("allow", f"network({fetch(index)})")]
    text, good, _ = await bench.call(fetch(index), access="network")
    assert good, text


async def test_no_other_gate_opens_anything(bench: Bench, index: str) -> None:
    """The gate of checks and servers allows everything, and that is everything in the sandbox."""
    only_sandboxed(bench)
    box = Toolbox(check_tools(bench.runner), bench.log, Gate())
    arguments = {"command": fetch(index), "access": "network"}
    result = await box.call("run_command", arguments, CALLER)
    assert isinstance(result.error, ApprovalDenied)


@pytest.mark.slow
@pytest.mark.case(68)
async def test_pip_installs_into_the_projects_environment(
    bench: Bench, index: str, place: Path
) -> None:
    """X4 and A3 together: the approved install writes .venv, with network, and it is told."""
    only_sandboxed(bench)
    venv.create(place / ".venv", with_pip=True, symlinks=True)
    pip = f".venv/bin/python -m pip install --no-cache-dir -q -i {index} tiny-letter"
    text, good, _ = await bench.call(f"{pip} --retries 0 --timeout 2")
    assert not good
    assert "access=network" in text
    bench.answer = ApprovalAnswer(True, "you")
    text, good, _ = await bench.call(pip, access="network")
    assert good, text
    assert ".venv" in text
    text, good, _ = await bench.call('.venv/bin/python -c "import tiny_letter"')
    assert good, text


@pytest.mark.case(70)
async def test_outside_the_sandbox_other_places_can_be_written(
    bench: Bench, tmp_path: Path
) -> None:
    """S9: also on a machine where no sandbox works, a person can approve it."""
    target = tmp_path / "elsewhere.txt"
    bench.answer = ApprovalAnswer(True, "you")
    text, good, _ = await bench.call(f"echo hi > {target}", access="outside")
    assert good, text
    assert target.read_text() == "hi\n"
    assert "[ran outside the sandbox]" in text
    assert bench.audited() == ["outside"]


async def test_a_refused_write_says_how_to_open_it(bench: Bench) -> None:
    only_sandboxed(bench)
    text, good, _ = await bench.call("touch /usr/share/evercontext-was-here")
    assert not good
    assert "access=outside" in text


async def test_without_a_sandbox_the_refusal_names_the_way(bench: Bench) -> None:
    """S9."""
    only_without(bench)
    _, _, error = await bench.call("true")
    assert isinstance(error, NoSandbox)
    assert "access=outside" in str(error)
