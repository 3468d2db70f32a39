"""Everything hostile that we have, in one command, with counts.

    python -m benchmarks.hostile_suite                  # everything, an hour on two cores
    python -m benchmarks.hostile_suite --scale 0.02     # fewer races, kills and power cuts
    python -m benchmarks.hostile_suite --only cases findings
    python -m benchmarks.hostile_suite --programs       # also installs Codex CLI and Gemini CLI
    python -m benchmarks.hostile_suite --soak 10        # also a soak of ten minutes

Suites: the cases of docs/reference/cases.md, the tests that name a finding (X1 and so on), the
folder tests/hostile, the probes of the sandbox in each layer, raced reads and writes with kills,
power cuts and failing system calls, hostile MCP servers, injected replies of a vendor's model, and
the soak. Prints a table of attempts, held, failed and skipped with the reasons; exits 1 if anything
failed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

TOP = Path(__file__).parents[1]
_FINDING = re.compile(r"\bX\d{1,2}\b")


@dataclass
class Score:
    """What one suite came to."""

    held: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason → how often."""
    broken: list[str] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        """Everything that was tried or would have been."""
        return self.held + self.failed + self.skipped.total()


def _run(*command: str) -> tuple[int, str]:
    """Run a command of ours; return how it ended and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(TOP), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=TOP,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout


def tests(*selection: str) -> Score:
    """Run tests and count them; a test that is not run is skipped with its reason."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.xml"
        command = ("-m", "pytest", "-q", "-n", "2", f"--junitxml={file}", *selection)
        code, text = _run(*command)
        if not file.exists():
            return Score(failed=1, broken=[f"pytest ended with {code}: {text[-300:]}"])
        return _count(file)


def _count(results: Path) -> Score:
    score = Score()
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        skipped = case.find("skipped")
        if skipped is not None:
            score.skipped[(skipped.get("message") or "no reason")[:100]] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            score.failed += 1
            score.broken.append(name)
        else:
            score.held += 1
    return score


def named_tests(folder: Path = TOP / "tests") -> Iterator[str]:
    """Yield the tests whose words name a finding; a whole file where its own words do."""
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if not _FINDING.search(text):
            continue
        module = ast.parse(text)
        place = str(file.relative_to(TOP))
        if _FINDING.search(ast.get_docstring(module) or ""):
            yield place
            continue
        for node in module.body:
            test = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if test and node.name.startswith("test_"):  # type: ignore[attr-defined]
                words = ast.get_source_segment(text, node) or ""
                if _FINDING.search(words):
                    yield f"{place}::{node.name}"  # type: ignore[attr-defined]


def cases(options: argparse.Namespace) -> Score:
    """The tests that prove a numbered case."""
    return tests("-m", "case and not real and not embedded", "tests")


def findings(options: argparse.Namespace) -> Score:
    """The tests that prove a row of what broke before."""
    return tests(*named_tests())


def folder(options: argparse.Namespace) -> Score:
    """All of tests/hostile, also what has no number."""
    return tests("tests/hostile")


def probes(options: argparse.Namespace) -> Score:
    """The attacks on the sandbox, in every layer that works here."""
    _, text = _run("-m", "benchmarks.sandbox")
    score = Score()
    for line in text.splitlines():
        if match := re.match(r"(blocked|ESCAPED) .*? s  (\S+)", line):
            score.held += match[1] == "blocked"
            score.failed += match[1] == "ESCAPED"
            score.broken += [match[2]] if match[1] == "ESCAPED" else []
        elif match := re.match(r"(\S+): no \((.*)\)", line):
            score.skipped[f"layer {match[1]}: {match[2]}"] += 1
    return _not_empty(score, text)


def races(options: argparse.Namespace) -> Score:
    """Swapped directories, kills, power cuts, failing system calls."""
    _, text = _run("-m", "benchmarks.hostile", "--scale", str(options.scale))
    score = Score()
    for line in text.splitlines():
        if "for comparison" in line:
            continue
        if match := re.search(r"skipped: (.+?)  ", line):
            score.skipped[match[1]] += 1
        elif match := re.search(r" (\d+) (tries|kills|cuts|points).* (ok|FAILED \((\d+)\))$", line):
            bad = int(match[4] or 0)
            score.failed += bad
            score.held += int(match[1]) - bad
            score.broken += [line[:34].strip()] if bad else []
    return _not_empty(score, text)


def servers(options: argparse.Namespace) -> Score:
    """MCP servers that mean no good, each beside a neighbour that is to notice nothing."""
    code, text = _run("benchmarks/hostile_servers.py")
    score = Score()
    for line in text.splitlines():
        if match := re.match(r"(.{38}) .*x  (ok|MISSED) ", line):
            score.held += match[2] == "ok"
            score.failed += match[2] == "MISSED"
            score.broken += [line.strip()[:90]] if match[2] == "MISSED" else []
    if code:
        score.failed += 1
        score.broken.append(f"ended with {code}: {text[-200:]}")
    return _not_empty(score, text)


def replies(options: argparse.Namespace) -> Score:
    """Replies that tell a vendor's program to write, read a key, fetch."""
    if not options.programs:
        return Score(skipped=Counter({"installs programs of other vendors: --programs": 1}))
    if shutil.which("npm") is None:
        return Score(skipped=Counter({"npm is not installed": 1}))
    _, text = _run("benchmarks/vendor_programs.py")
    score = Score()
    for row in re.finditer(r"^\| (\S+ \S+) \| (\d+) \| .* \| (\d+) \| (\d+) \|", text, re.M):
        attacks, silent, effects = int(row[2]), int(row[3]), int(row[4])
        score.failed += effects
        score.held += max(attacks - silent - effects, 0)
        score.skipped[f"{row[1]} gave no answer"] += silent
        score.broken += [f"{row[1]}: {effects} effects"] if effects else []
    return _not_empty(score, text)


def soak(options: argparse.Namespace) -> Score:
    """Accidents under load; what was acknowledged counts as attempts."""
    if not options.soak:
        return Score(skipped=Counter({"takes minutes: --soak MINUTES": 1}))
    code, text = _run("-m", "benchmarks.soak", "--minutes", str(options.soak))
    print(text)
    score = Score()
    if match := re.search(r"^acknowledged (\d+) writes, (\d+) memories", text, re.M):
        lost = sum(int(count) for count in re.findall(r"^lost +(\d+) ", text, re.M))
        wrong = re.search(r"^wrong reads +(\d+)", text, re.M)
        score.failed = lost + int(wrong[1] if wrong else 0)
        score.held = int(match[1]) + int(match[2]) - lost
    if code and not score.failed:
        score.failed, score.broken = 1, [f"ended with {code}"]
    for kind, reason in re.findall(r"^skipped +(.+?): (.+)$", text, re.M):
        score.skipped[f"{kind}: {reason}"] += 1
    return _not_empty(score, text)


def _not_empty(score: Score, text: str) -> Score:
    """A suite that counted nothing did not run, which is a failure."""
    if not score.attempts:
        score.failed, score.broken = 1, [f"counted nothing: {text[-300:]}"]
    return score


SUITES: dict[str, Callable[[argparse.Namespace], Score]] = {
    "cases": cases,
    "findings": findings,
    "folder": folder,
    "sandbox": probes,
    "races": races,
    "servers": servers,
    "replies": replies,
    "soak": soak,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", choices=SUITES, default=list(SUITES))
    parser.add_argument("--scale", type=float, default=1.0, help="of races, kills and power cuts")
    parser.add_argument("--programs", action="store_true", help="install vendors' programs")
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    options = parser.parse_args()
    scores: dict[str, Score] = {}
    for name in options.only:
        started = time.monotonic()
        scores[name] = SUITES[name](options)
        seconds = time.monotonic() - started
        print(f"{name}: {scores[name].held} held in {seconds:.0f} s", file=sys.stderr, flush=True)
    print(f"{'suite':10} {'attempts':>9} {'held':>9} {'failed':>7} {'skipped':>8}")
    for name, score in scores.items():
        skipped = score.skipped.total()
        print(f"{name:10} {score.attempts:9} {score.held:9} {score.failed:7} {skipped:8}")
    for name, score in scores.items():
        for reason, count in score.skipped.most_common():
            print(f"skipped  {name}: {count} x {reason}")
        for line in score.broken:
            print(f"FAILED   {name}: {line}")
    return 1 if any(score.failed for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
