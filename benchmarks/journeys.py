"""Follow four journeys through the code: how many of our frames lie between entry and act.

    python benchmarks/journeys.py                      # this checkout
    python benchmarks/journeys.py ../before --show     # another one beside it, and each path

A journey is one real process and one act: `run` puts a file in its place, REST opens one, `search`
scores the words of a question, the router writes a call to a server's pipe. Printed are

- frames: functions of ours from the entry (the socket, or the command's function) to the act,
  followed back through tasks and threads to where they were started;
- modules: those of ours that are loaded by then;
- upward: steps of that path from a lower to a higher layer. A tool that the toolbox runs is no
  such step, nor work that a thread does for its caller, as both return to who called them by an
  interface that the lower layer owns;
- elsewhere: distinct calls upward beside the path, since the process began; --show names them.

A checkout is run with its own `.venv`, or with this Python.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent.parent
INTERFACES = {"tools.toolbox", "process.worker_threads"}
"""Modules that run a tool or a job of a higher layer for their caller."""
JOURNEYS = ("run", "REST", "search", "router")
COLUMNS = ("frames", "modules", "upward", "elsewhere")
MARK = "journey-marker"
TARGET = "journey_target.py"
ADD = "def add(a, b):\n    return a + b\n"
CREATE = {"path": TARGET, "content": ADD, "mode": "create"}
SCRIPT = [{"tool_calls": [{"name": "write_file", "arguments": CREATE}]}, {"text": "Done."}]
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    tool = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "echo", "version": "1"}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    if "id" in message:
        result = results.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


# What runs inside the process that is followed.

Place = tuple[str, str]
"""Module of ours, without the package's name, and function."""


class Probe:
    """Watch one process: its stack at the act, and the calls that go up."""

    def __init__(self, source: Path, journey: str, report: Path) -> None:
        self._source = f"{source}{os.sep}"
        self._journey, self._report = journey, report
        self._layers = layers(source.parent.parent)
        self._parents: dict[int, tuple[Any, list[Place]]] = {}
        self._thread = threading.local()
        self._upward: Counter[tuple[Place, Place]] = Counter()
        self._is_done = False

    def install(self) -> None:
        """Follow tasks and threads to where they begin, and watch for the act."""
        create = asyncio.BaseEventLoop.create_task

        def create_task(loop: Any, coroutine: Any, **options: Any) -> Any:
            task = create(loop, coroutine, **options)
            self._parents[id(task)] = task, self.path(sys._getframe(1))
            return task

        asyncio.BaseEventLoop.create_task = create_task
        submit = ThreadPoolExecutor.submit
        ThreadPoolExecutor.submit = self._remembering(submit)

        def wrap(cls: type, **options: Any) -> None:
            if "submit" in vars(cls):
                cls.submit = self._remembering(cls.submit)

        ThreadPoolExecutor.__init_subclass__ = classmethod(wrap)
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)

    def _remembering(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        def remember(pool: Any, function: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
            path = self.path(sys._getframe(1))

            def work() -> Any:
                self._thread.path = path
                return function(*args, **kw)

            return submit(pool, work)

        return remember

    def path(self, frame: FrameType | None) -> list[Place]:
        """Return our functions from the entry to a frame."""
        places = []
        while frame is not None and not _begins_step(frame):
            if place := self._place(frame):
                places.append(place)
            frame = frame.f_back
        places.reverse()
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is not None:
            return self._parents.get(id(task), (None, []))[1] + places
        return list(getattr(self._thread, "path", [])) + places

    def _place(self, frame: FrameType) -> Place | None:
        name = frame.f_code.co_filename
        if not name.startswith(self._source) or frame.f_code.co_name == "<module>":
            return None
        module = name[len(self._source) :].removesuffix(".py").replace(os.sep, ".")
        return module.removesuffix(".__init__"), frame.f_code.co_qualname

    def _watch(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._is_done or event != "call":
            return
        place = self._place(frame)
        if place:
            self._look_up(frame, place)
        if ACTS[self._journey](frame, place):
            self._act(frame)

    def _look_up(self, frame: FrameType, place: Place) -> None:
        """Count a call whose caller stands on a lower layer."""
        if frame.f_code.co_name in ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"):
            return
        back = frame.f_back
        while back is not None and not _begins_step(back):
            if caller := self._place(back):
                if self._layer(place) < self._layer(caller):
                    self._upward[caller, place] += 1
                return
            if back.f_code.co_name == "<module>":
                return
            back = back.f_back

    def _layer(self, place: Place) -> int:
        return self._layers.get(place[0].partition(".")[0], -1)

    def _act(self, frame: FrameType) -> None:
        self._is_done = True
        sys.setprofile(None)
        path = self.path(frame)
        modules = sum(name.partition(".")[0] == "evercontext" for name in sys.modules)
        upward = [(caller, callee) for caller, callee in self._upward]
        data = {"path": path, "modules": modules, "upward": upward}
        self._report.write_text(json.dumps(data), encoding="utf-8")


def _begins_step(frame: FrameType) -> bool:
    """Return whether the event loop calls something here: what lies below is another story."""
    code = frame.f_code
    return code.co_name == "_run" and code.co_filename.endswith(f"asyncio{os.sep}events.py")


def _calls_kernel(frame: FrameType, place: Place | None, *methods: str) -> bool:
    """Return whether a system call with the name of the target begins."""
    if not place or place[1] not in {f"Kernel.{method}" for method in methods}:
        return False
    return any(str(value).endswith(TARGET) for value in frame.f_locals.values())


def _replaces(frame: FrameType, place: Place | None) -> bool:
    return _calls_kernel(frame, place, "rename", "rename_new", "exchange")


def _opens(frame: FrameType, place: Place | None) -> bool:
    return _calls_kernel(frame, place, "open", "openat2")


def _scores(frame: FrameType, place: Place | None) -> bool:
    return bool(place and place[0].startswith(("index.", "retrieval.")) and "bm25f" in place[1])


def _sends(frame: FrameType, place: Place | None) -> bool:
    code = frame.f_code
    if code.co_name not in ("write", "writelines") or "asyncio" not in code.co_filename:
        return False
    values = (frame.f_locals.get(name) for name in code.co_varnames[:2])
    return any(isinstance(v, bytes | bytearray) and MARK.encode() in v for v in values)


ACTS = {"run": _replaces, "REST": _opens, "search": _scores, "router": _sends}


def layers(checkout: Path) -> dict[str, int]:
    """Map each package to its layer, the highest first, as the import linter is told."""
    config = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (rows,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name: n for n, row in enumerate(rows) for name in re.findall(r"\w+", row)}


def follow(source: str, journey: str, report: str, *arguments: str) -> None:
    """Run the command line in this process, watched."""
    from evercontext.cli.main import main

    Probe(Path(source), journey, Path(report)).install()
    main(list(arguments))


# What starts the processes and prints.


class Checkout:
    """One edition of the source, and a project to travel in."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder, self._base = folder.resolve(), base
        venv = self.folder / ".venv/bin/python"
        self._python = str(venv) if venv.is_file() else sys.executable
        self._project = base / "project"
        self._project.mkdir(parents=True)
        (self._project / TARGET).write_text(ADD)
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(base),
            "EC_HOME": str(base / "home"),
            "PYTHONPATH": str(self.folder / "src"),
            "EC_ROUTER_PORT": "0",
            "EC_PORT": "0",
        }

    def travel(self, journey: str) -> dict[str, Any]:
        """Make one journey and return what the probe saw."""
        report = self._base / f"{journey}.json"
        {
            "run": self._run,
            "REST": self._read_by_rest,
            "search": self._search,
            "router": self._call_by_router,
        }[journey](report)
        if not report.is_file():
            raise SystemExit(f"{self.folder}: the act of {journey} was not seen")
        return dict(json.loads(report.read_text(encoding="utf-8")))

    def _run(self, report: Path) -> None:
        script = self._base / "script.jsonl"
        script.write_text("".join(f"{json.dumps(turn)}\n" for turn in SCRIPT), encoding="utf-8")
        (self._project / TARGET).unlink()
        task = ("--task", f"Create {TARGET}", "--model", f"scripted:{script}")
        self._finish(self._command("run", report, "run", *task))

    def _search(self, report: Path) -> None:
        self._finish(self._ours("search", "add"))
        self._finish(self._command("search", report, "search", "add"))

    def _read_by_rest(self, report: Path) -> None:
        with self._serving("REST", report, "gateway") as url:
            _post(f"{url}/read_file", {"path": TARGET})

    def _call_by_router(self, report: Path) -> None:
        server = self._base / "echo_server.py"
        server.write_text(SERVER, encoding="utf-8")
        self._finish(self._ours("servers", "add", "echo", "--", self._python, str(server)))
        secret = self._finish(self._ours("tokens", "create", "journey"))
        with self._serving("router", report, "router") as url:
            arguments = {"toolKey": "echo:echo", "arguments": {"text": MARK}}
            params = {"name": "tool_execute", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            _post(url, message, secret)

    @contextmanager
    def _serving(self, journey: str, report: Path, server: str) -> Iterator[str]:
        """Serve, watched, and yield the address."""
        command = self._command(journey, report, "serve", "--only", server)
        with subprocess.Popen(
            command, cwd=self._project, env=self._environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr
            printed = ""
            try:
                for line in process.stderr:
                    printed += line
                    if line.startswith("Ctrl-C"):
                        break
                address = re.search(r"http://127[^\s/]+(?:/mcp)?", printed)
                if address is None:
                    raise SystemExit(f"{self.folder}: {printed}")
                yield address[0]
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)

    def _command(self, journey: str, report: Path, *arguments: str) -> list[str]:
        source = str(self.folder / "src/evercontext")
        return [self._python, __file__, "--follow", source, journey, str(report), *arguments]

    def _ours(self, *arguments: str) -> list[str]:
        return [self._python, "-c", "from evercontext.cli.main import main; main()", *arguments]

    def _finish(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self._project, env=self._environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()


def _post(url: str, body: dict[str, Any], secret: str = "") -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if secret:
        headers["authorization"] = f"Bearer {secret}"
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        answer.read()


def frames(seen: dict[str, Any]) -> list[list[str]]:
    """Return the path from the function of the command, or from the socket."""
    path = seen["path"]
    begins = (
        n
        for n, (module, name) in enumerate(path)
        if module.startswith("cli.") and name == "command"
    )
    return path[next(begins, 0) :]


def steps_upward(path: list[list[str]], order: dict[str, int]) -> list[str]:
    """Return the steps of a path to a higher layer, but for those by a shared interface."""
    steps = []
    for (module, name), (next_module, next_name) in pairwise(path):
        higher = order[next_module.partition(".")[0]] < order[module.partition(".")[0]]
        if higher and module not in INTERFACES:
            steps.append(f"{module}.{name} -> {next_module}.{next_name}")
    return steps


def show(title: str, results: dict[str, dict[str, Any]]) -> None:
    """Print the path of each journey, and what was called upward."""
    for journey, seen in results.items():
        print(f"\n{title} · {journey}")
        for number, (module, function) in enumerate(frames(seen), 1):
            print(f"  {number:3d}  {module:34s} {function}")
        for caller, callee in elsewhere(seen):
            print(f"  upward elsewhere  {'.'.join(caller)} -> {'.'.join(callee)}")


def elsewhere(seen: dict[str, Any]) -> list[Any]:
    """Return the calls upward beside the path, but for those by a shared interface."""
    return [pair for pair in seen["upward"] if pair[0][0] not in INTERFACES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    parser.add_argument("--only", choices=JOURNEYS)
    parser.add_argument("--show", action="store_true", help="print each path")
    options = parser.parse_args()
    chosen = [options.only] if options.only else JOURNEYS
    table: dict[Path, dict[str, dict[str, Any]]] = {}
    for folder in [*options.checkouts, HERE]:
        with tempfile.TemporaryDirectory() as base:
            checkout = Checkout(folder, Path(base).resolve())
            table[folder] = {journey: checkout.travel(journey) for journey in chosen}
        if options.show:
            show(folder.name, table[folder])
    print(f"\n{'journey':10s}{'checkout':20s}", *(f"{c:>9s}" for c in COLUMNS))
    for journey in chosen:
        for folder, results in table.items():
            seen = results[journey]
            upward = steps_upward(frames(seen), layers(folder))
            counts = (len(frames(seen)), seen["modules"], len(upward), len(elsewhere(seen)))
            print(f"{journey:10s}{folder.name:20s}", *(f"{count:9d}" for count in counts))
            for step in upward:
                print(f"{'':10s}upward: {step}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        follow(*sys.argv[2:])
    else:
        main()
