"""Find a vendor's program, learn once what its version understands, and remember it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evercontext.errors import ModelUnavailable, ProcessProblem
from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently
from evercontext.files.small_files import first_bytes
from evercontext.process import system_paths
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, Sandbox

PROBE_SECONDS = 60.0
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "fish")
_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\S*")
_OPTION = re.compile(r"^\s+(?:-\w, )?(--[a-z][a-z-]+)", re.MULTILINE)
_FEATURE = re.compile(r"^([a-z][\w.]*)\s+.*\b(true|false)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Program:
    """One program as it lies on this machine."""

    path: Path
    command: tuple[str, ...]
    """How to start it: itself, or its interpreter and the script."""
    needs: tuple[Path, ...] | None
    """Files it reads at start; None where a shell script starts it, which needs other programs."""

    @classmethod
    def find(cls, name: str, environment: Mapping[str, str]) -> Program | None:
        """Return the program that PATH names, or None."""
        path = shutil.which(name, path=environment.get("PATH"))
        if path is None:
            return None
        real = Path(path).resolve()
        interpreter = _interpreter(real, environment)
        if not interpreter:
            return cls(Path(path), (str(real),), (*_package(real), *system_paths.libraries()))
        if Path(interpreter[0]).name in _SHELLS:
            return cls(Path(path), (path,), None)
        needs = (*_package(real), *_installation(Path(interpreter[0])), *system_paths.libraries())
        return cls(Path(path), (*interpreter, str(real)), needs)

    def sandbox(self, root: Path, layer: Layer, *, network: bool) -> Sandbox:
        """Return a sandbox in which the program writes ``root`` and reads only what it needs."""
        beside = (
            () if self.needs is not None else (self.path.parent, *_package(self.path.resolve()))
        )
        return Sandbox(root, layer, only=self.needs, readable=beside, network=network)

    def fingerprint(self) -> str:
        """Return a text that changes when the program is replaced.

        Packages come with one and the same modification time for every version; the time of the
        change of the inode tells them apart.
        """
        parts = [" ".join(self.command)]
        for name in {self.path, self.path.resolve()}:
            status = name.stat()
            parts += [str(n) for n in (status.st_size, status.st_mtime_ns, status.st_ctime_ns)]
        return "|".join(parts)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a program's version understands."""

    version: str = ""
    """Empty where the program does not name one."""
    options: tuple[str, ...] = ()
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def number(self) -> tuple[int, int, int]:
        """The version for comparisons."""
        match = _VERSION.search(self.version)
        return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)

    def at_least(self, *number: int) -> bool:
        """True if the version is that one or a later one."""
        return self.number >= number


@dataclass(frozen=True, slots=True)
class Probes:
    """The questions that a program answers about itself."""

    options: tuple[str, ...]
    features: tuple[str, ...] = ()


async def learn(
    program: Program,
    probes: Probes,
    *,
    state: Path,
    layer: Layer,
    environment: Mapping[str, str],
) -> Facts:
    """Return what the program understands, from the cache if it is the one that was asked then."""
    cache = state / "programs.json"
    fingerprint = program.fingerprint()
    remembered = await asyncio.to_thread(_read_cache, cache)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return _facts(remembered[fingerprint])
    facts = await _ask(program, probes, layer, environment)
    if facts.version:
        await asyncio.to_thread(_remember, cache, fingerprint, facts)
    return facts


async def _ask(
    program: Program, probes: Probes, layer: Layer, environment: Mapping[str, str]
) -> Facts:
    with tempfile.TemporaryDirectory(prefix="evercontext-") as folder:
        root = Path(folder)
        home = {"HOME": folder, "CODEX_HOME": folder, "GEMINI_CLI_HOME": folder}
        env = {**environment, **home}

        async def ask(*words: str) -> str:
            return (await _run(program, words, root, layer, env)).text

        line = next(iter((await ask("--version")).strip().splitlines()), "")
        match = _VERSION.search(line) if len(line) < 80 else None
        if match is None:
            return Facts()
        options = _OPTION.findall(await ask(*probes.options))
        features = _FEATURE.findall(await ask(*probes.features)) if probes.features else []
        return Facts(match[0], tuple(options), {name: on == "true" for name, on in features})


async def _run(
    program: Program, words: Sequence[str], root: Path, layer: Layer, env: Mapping[str, str]
) -> Completed:
    sandbox = program.sandbox(root, layer, network=False)
    try:
        done = await run(
            [*program.command, *words], cwd=root, env=env, timeout=PROBE_SECONDS, sandbox=sandbox
        )
    except ProcessProblem as error:
        raise ModelUnavailable(f"{program.path.name}: {error.message}", fix=error.fix) from error
    if done.timed_out:
        question = " ".join(words)
        raise ModelUnavailable(
            f"{program.path.name} {question} did not finish in {PROBE_SECONDS:.0f} s"
        )
    return done


def _interpreter(script: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the command of a script's first line; empty for a binary."""
    first = (first_bytes(script.parent, script.name, 1024) or b"").partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return []
    words = first[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words:
        return []
    place = shutil.which(words[0], path=environment.get("PATH"))
    return [place or words[0], *words[1:]]


def _package(real: Path) -> tuple[Path, ...]:
    """Return the folder of packages that a file belongs to, or the file alone."""
    folders = [parent for parent in real.parents if parent.name == "node_modules"]
    return (folders[-1],) if folders else (real,)


def _installation(interpreter: Path) -> tuple[Path, ...]:
    """Return what an interpreter needs: its own prefix, where that holds nothing else."""
    return tuple(part for path in {interpreter, interpreter.resolve()} for part in _prefix(path))


def _prefix(path: Path) -> tuple[Path, ...]:
    prefix, home = path.parent.parent, Path.home()
    shared = (Path("/"), Path("/usr"), Path("/usr/local"), home, *home.parents)
    alone = path.parent.name != "bin" or prefix in shared or prefix == home / ".local"
    return (path,) if alone else (prefix,)


def _read_cache(path: Path) -> dict[str, Any]:
    return read_json_leniently(path) or {}


def _facts(entry: Any) -> Facts:
    return Facts(str(entry["version"]), tuple(entry["options"]), dict(entry["features"]))


def _remember(path: Path, fingerprint: str, facts: Facts) -> None:
    """Add an entry; the same program's older ones go. A cache that cannot be written costs time."""
    program = fingerprint.split("|")[0]
    entries = {
        key: entry for key, entry in _read_cache(path).items() if key.split("|")[0] != program
    }
    entries[fingerprint] = asdict(facts)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, json.dumps(entries).encode(), durable=False)
