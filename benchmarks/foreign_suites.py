"""Suites that others wrote for the same tasks, run against us through thin adapters.

    python benchmarks/foreign_suites.py FOLDER [--codex CHECKOUT] [--servers CHECKOUT]

CHECKOUT is a clone of ``openai/codex`` or ``modelcontextprotocol/servers`` on GitHub: nothing of
theirs is in this repository. FOLDER keeps what is installed from npm (vitest).

- Codex: each patch scenario (``codex-rs/apply-patch/tests/fixtures/scenarios``) is one task of
  ours whose scripted model reads the files and calls ``apply_patch``, as Codex models do by habit.
  The tree afterwards is compared with the expected one, byte by byte, as their own runner does it.
- The filesystem server: its tests of paths (``path-validation.test.ts``), unchanged, import an
  adapter instead of its own module. It asks us whether our tools would take that path in a root.

Each failure is printed with its reason. One without a reason in ``REASONS``, or a reason that is
no longer needed, ends the command with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCENARIOS = Path("codex-rs/apply-patch/tests/fixtures/scenarios")
PATH_TESTS = Path("src/filesystem/__tests__/path-validation.test.ts")
VITEST = "vitest@4"
_DOTS = "a name that ends with a dot is refused: other systems drop the dot"
REASONS = {
    "010_move_overwrites_existing_destination": "a move replaces no file: the name must be free,"
    " and the model is told so",
    "016_pure_addition_update_chunk": "new lines without any line of the file are refused, and the"
    " model is asked where they belong",
    "Path Validation Validation Tests - Path Traversal handles complex traversal patterns": _DOTS,
    "Path Validation Additional Coverage handles symbolic dots in filenames": _DOTS,
    "Path Validation Edge Cases handles very long paths": "1,000 levels: we take 128",
    "Path Validation Symlink Tests validates paths correctly when allowed directory is resolved"
    " from symlink": "it shows what a root that is not resolved would refuse; ours is resolved when"
    " it is opened, so a file is taken by either name of its folder",
}
"""What differs on purpose, by the name of a scenario or a test."""

_ADAPTER = """\
import fs from "fs";
const out = fs.openSync(process.env.QUESTIONS, "w");
const into = fs.openSync(process.env.ANSWERS, "r");
export function isPathWithinAllowedDirectories(path, directories) {
  fs.writeSync(out, JSON.stringify([path ?? null, directories ?? null, process.cwd()]) + "\\n");
  const answer = Buffer.alloc(1);
  fs.readSync(into, answer, 0, 1, null);
  return answer.toString() === "1";
}
"""


def patch_scenarios(checkout: Path) -> dict[str, str]:
    """Run every scenario; return what differs by its name, nothing where it passed."""
    outcomes = {}
    for scenario in sorted((checkout / SCENARIOS).iterdir()):
        if scenario.is_dir():
            with tempfile.TemporaryDirectory() as folder:
                outcomes[scenario.name] = asyncio.run(_differs(scenario, Path(folder)))
    return outcomes


async def _differs(scenario: Path, folder: Path) -> str:
    """Let a scripted model read the files and patch them; say which are not as expected."""
    from evercontext import settings as sources
    from evercontext.app import EverContext

    project = folder / "project"
    before = scenario / "input"
    if before.is_dir():
        shutil.copytree(before, project)
    else:
        project.mkdir()
    script = folder / "script.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in _turns(scenario, project)))
    environment = {"EC_HOME": str(folder / "home"), "PATH": os.defpath}
    settings = sources.load({"root": str(project)}, environment=environment, cwd=project)
    async with EverContext.open(settings) as app:
        done = await app.run_task("Apply the patch.", model_name=f"scripted:{script}")
    expected, actual = _tree(scenario / "expected"), _tree(project)
    names = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
    return (
        f"not as expected: {', '.join(names)}; the run ended {done.outcome.name}" if names else ""
    )


def _turns(scenario: Path, project: Path) -> list[dict[str, Any]]:
    """The model reads every file first, without which our tools change none."""
    names = [str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()]
    reads = [{"name": "read_file", "arguments": {"path": name}} for name in names]
    patch = {"name": "apply_patch", "arguments": {"input": _text(scenario / "patch.txt")}}
    turns = [{"tool_calls": reads}] if reads else []
    return [*turns, {"tool_calls": [patch]}, {"text": "Done."}]


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _tree(root: Path) -> dict[str, bytes | None]:
    """Return the files below a folder with their content, and the folders."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def path_tests(checkout: Path, folder: Path) -> dict[str, str]:
    """Run the tests of paths with our answers; return what failed by the name of a test."""
    _install_vitest(folder)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tests = Path(place, "__tests__")
        tests.mkdir()
        shutil.copy(checkout / PATH_TESTS, tests)
        Path(place, "path-validation.js").write_text(_ADAPTER)
        pipes = {name: str(Path(place, name)) for name in ("QUESTIONS", "ANSWERS")}
        for pipe in pipes.values():
            os.mkfifo(pipe)
        threading.Thread(target=_answer, args=(pipes,), daemon=True).start()
        report = Path(place, "report.json")
        vitest = folder / "node_modules" / ".bin" / "vitest"
        words = ["run", "--root", place, "--reporter=json", f"--outputFile={report}"]
        done = subprocess.run(
            [str(vitest), *words],
            cwd=place,
            env={**os.environ, **pipes},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.is_file():
            raise SystemExit(done.stderr or done.stdout)
        results = json.loads(report.read_text())["testResults"]
    tests_run = [each for result in results for each in result["assertionResults"]]
    return {each["fullName"]: _first_line(each["failureMessages"]) for each in tests_run}


def _first_line(messages: list[str]) -> str:
    lines = [line.strip() for message in messages for line in message.splitlines()]
    place = next((line.rpartition("/")[2] for line in lines if ".test.ts:" in line), "")
    return f"{lines[0]} at {place.rstrip(')')}" if lines else ""


def _install_vitest(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "vitest").is_dir():
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--no-audit", VITEST], cwd=folder, check=True)


def _answer(pipes: Mapping[str, str]) -> None:
    with open(pipes["QUESTIONS"], encoding="utf-8") as questions:
        answers = os.open(pipes["ANSWERS"], os.O_WRONLY)
        for line in questions:
            path, directories, cwd = json.loads(line)
            os.write(answers, b"1" if taken(path, directories, cwd) else b"0")


def taken(path: Any, directories: Any, cwd: str) -> bool:
    """True if one of our file tools would take the path in one of the directories as its root."""
    from evercontext.domain.tool import Effect, Tool
    from evercontext.errors import PathEscape, PathRefused
    from evercontext.files import path_names
    from evercontext.tools.argument_check import with_relative_paths

    if not isinstance(path, str) or not isinstance(directories, list):
        return False
    for directory in directories:
        if not isinstance(directory, str) or not directory or "\0" in directory:
            continue
        root = os.path.realpath(Path(cwd, directory))
        tool = Tool("read_file", "Read.", {}, Effect.READ, _run_nothing)
        ours = with_relative_paths(tool, {"path": path}, root)["path"]
        try:
            path_names.parse(ours)
        except (PathEscape, PathRefused):
            continue
        return True
    return False


async def _run_nothing(*_: Any) -> Any:
    raise NotImplementedError


def report(title: str, outcomes: Mapping[str, str]) -> bool:
    """Print the counts and each failure; return whether all of them have a reason."""
    failed = {name: why for name, why in outcomes.items() if why}
    print(f"{title}: {len(outcomes) - len(failed)} of {len(outcomes)} passed")
    for name, why in failed.items():
        print(f"  {name}: {why}\n    {REASONS.get(name, 'NO REASON IS KNOWN')}")
    stale = [name for name in outcomes if name in REASONS and name not in failed]
    for name in stale:
        print(f"  {name}: passes; its reason is no longer needed")
    return not stale and all(name in REASONS for name in failed)


def main() -> int:
    """Run the suites whose checkout is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where vitest is installed")
    parser.add_argument("--codex", type=Path, help="a clone of openai/codex")
    parser.add_argument("--servers", type=Path, help="a clone of modelcontextprotocol/servers")
    options = parser.parse_args()
    for checkout, place in ((options.codex, SCENARIOS), (options.servers, PATH_TESTS)):
        if checkout and not (checkout / place).exists():
            parser.error(f"{checkout} has no {place}; name a clone that has it")
    if not (options.codex or options.servers):
        parser.error("name a clone with --codex or --servers")
    fine = True
    if options.codex:
        fine &= report("Codex patch scenarios", patch_scenarios(options.codex))
    if options.servers:
        tests = path_tests(options.servers, options.folder.resolve())
        fine &= report("Path tests of the filesystem server", tests)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
