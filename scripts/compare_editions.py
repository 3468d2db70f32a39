"""List what another checkout offered and this one offers otherwise: commands, JSON, Python names.

    python scripts/compare_editions.py ../before          # what is gone or has changed, by kind
    python scripts/compare_editions.py ../before --texts  # with the help texts, line by line

Each checkout describes itself in a process of its own, with its own `.venv` if it has one: every
command with its options and help; the keys and types of what commands, REST and MCP answer in a
small project; every module, and the names of the public ones. Added keys, options and commands are
listed after what is gone. It exits 1 if something is gone: a command, an option, a key, a module or
a public name. What is gone has to stand in CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
PUBLIC = ("evercontext", "evercontext.errors", "evercontext.testing", "evercontext.plugins")
"""Modules that others import from: the library, its errors, helpers for tests, plug-ins."""
SCRIPT = [
    {
        "tool_calls": [
            {
                "name": "write_file",
                "arguments": {"path": "new.py", "content": "x = 1\n", "mode": "create"},
            }
        ]
    },
    {"text": "Done."},
]
ANSWERS: dict[str, tuple[str, ...]] = {
    "run --json": ("run", "--task", "Create new.py", "--json", "--model", "{script}"),
    "run stream-json": (
        *("run", "--task", "Create new.py", "--output-format", "stream-json"),
        *("--model", "{script}"),
    ),
    "search --json": ("search", "add", "--json", "--explain"),
    "index --json": ("index", "--json"),
    "evaluate --json": ("evaluate", "README.md", "--json"),
    "trace list --json": ("trace", "list", "--json"),
    "trace show --json": ("trace", "show", "last", "--json"),
    "kpi --json": ("kpi", "--json"),
    "sessions list --json": ("sessions", "list", "--json"),
    "memory add": ("memory", "add", "the cart is in shop/cart.py"),
    "memory list --json": ("memory", "list", "--json"),
    "memory search --json": ("memory", "search", "cart", "--json"),
    "context --json": ("context", "Change the cart", "--json", "--model", "{script}"),
    "tools list --json": ("tools", "list", "--json"),
    "tools search --json": ("tools", "search", "read a file", "--json"),
    "servers list --json": ("servers", "list", "--json"),
    "projects list --json": ("projects", "list", "--json"),
    "tokens list --json": ("tokens", "list", "--json"),
    "skills --json": ("skills", "list", "--json"),
    "hooks --json": ("hooks", "list", "--json"),
    "model list --json": ("model", "list", "--json"),
    "config show --json": ("config", "show", "--json"),
    "doctor --json": ("doctor", "--json"),
    "undo --list --json": ("undo", "--list", "--json"),
}
REQUESTS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "GET /health": ("/health", None),
    "GET /openapi.json": ("/openapi.json", None),
    "POST /list_files": ("/list_files", {"path": "."}),
    "POST /read_file": ("/read_file", {"path": "README.md"}),
    "POST /read_file, missing": ("/read_file", {"path": "missing.py"}),
    "POST /write_file": (
        "/write_file",
        {"path": "by_rest.txt", "content": "x", "mode": "overwrite"},
    ),
    "POST /search": ("/search", {"query": "add"}),
    "POST /mcp tools/list": (
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    ),
}


# What a checkout says of itself.


def describe() -> dict[str, Any]:
    """Return the commands, modules and public names of the package that is imported here."""
    warnings.simplefilter("ignore")
    modules = sorted(_modules())
    return {
        "commands": dict(_commands()),
        "modules": modules,
        "names": {name: sorted(_names(name)) for name in PUBLIC if name in modules},
    }


def _modules() -> Iterator[str]:
    package = import_module("evercontext")
    yield "evercontext"
    for module in pkgutil.walk_packages(package.__path__, "evercontext.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            yield module.name


def _names(module: str) -> Iterator[str]:
    loaded = import_module(module)
    exported = getattr(loaded, "__all__", None)
    for name in exported if exported is not None else vars(loaded):
        value = getattr(loaded, name)
        is_own = exported is not None or getattr(value, "__module__", module) == module
        if is_own and not name.startswith("_") and not inspect.ismodule(value):
            yield name


def _commands() -> Iterator[tuple[str, dict[str, Any]]]:
    import click

    from evercontext.cli import main

    os.environ["COLUMNS"] = "100"
    (root,) = (v for v in vars(main).values() if isinstance(v, click.Group))
    yield from _command(root, "evercontext", None)


def _command(command: Any, path: str, parent: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    import click

    context = click.Context(command, parent, path.rpartition(" ")[2])
    options = sorted({o for p in command.params for o in (*p.opts, *p.secondary_opts)})
    yield path, {"options": options, "help": command.get_help(context).splitlines()}
    if isinstance(command, click.Group):
        aliases = getattr(sys.modules["evercontext.cli.main"], "ALIASES", {}) if not parent else {}
        for name in [*command.list_commands(context), *aliases]:
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _command(inner, f"{path} {name}", context)


# What it answers.


class Edition:
    """One checkout, and a small project in which its commands are run."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder = folder.resolve()
        venv = self.folder / ".venv/bin/python"
        self._python = str(venv) if venv.is_file() else sys.executable
        self._project = base / "project"
        (self._project / "shop").mkdir(parents=True)
        (self._project / "shop/cart.py").write_text("def add(a, b):\n    return a + b\n")
        (self._project / "README.md").write_text("# Shop\n\nAdds things to a cart.\n")
        self._script = base / "script.jsonl"
        self._script.write_text("".join(f"{json.dumps(turn)}\n" for turn in SCRIPT))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(base),
            "EC_HOME": str(base / "home"),
            "EC_PORT": "0",
            "USE_MOCK_EVALUATOR": "true",
            "PYTHONPATH": str(self.folder / "src"),
        }

    def describe(self) -> dict[str, Any]:
        """Return everything that is compared."""
        described = json.loads(self._finish([self._python, __file__, "--describe"]))
        return {**described, "answers": {**self._answers(), **self._responses()}}

    def can_import(self, modules: list[str]) -> list[str]:
        """Return those of the modules that cannot be imported here."""
        code = (
            "import importlib, json, sys, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "missing = []\n"
            "for name in json.load(sys.stdin):\n"
            "    try: importlib.import_module(name)\n"
            "    except ModuleNotFoundError: missing.append(name)\n"
            "print(json.dumps(missing))\n"
        )
        printed = self._finish([self._python, "-c", code], json.dumps(modules))
        return list(json.loads(printed))

    def _answers(self) -> dict[str, list[str]]:
        shapes = {}
        for title, arguments in ANSWERS.items():
            (self._project / "new.py").unlink(missing_ok=True)
            filled = [a.replace("{script}", f"scripted:{self._script}") for a in arguments]
            main = "from evercontext.cli.main import main; main()"
            printed = self._finish([self._python, "-c", main, *filled])
            shapes[title] = _shapes_of(printed)
        return shapes

    def _responses(self) -> dict[str, list[str]]:
        main = "from evercontext.cli.main import main; main()"
        command = [self._python, "-c", main, "serve", "--only", "gateway"]
        with subprocess.Popen(
            command, cwd=self._project, env=self._environment, stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stderr
            printed = ""
            for line in server.stderr:
                printed += line
                if line.startswith("Ctrl-C"):
                    break
            try:
                address = re.search(r"http://127[^\s/]+", printed)
                if address is None:
                    raise SystemExit(printed)
                return {
                    title: _shapes_of(_ask(address[0] + path, body))
                    for title, (path, body) in REQUESTS.items()
                }
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(30)

    def _finish(self, command: list[str], stdin: str = "") -> str:
        return subprocess.run(
            command,
            cwd=self._project,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
        ).stdout


def _ask(url: str, body: dict[str, Any] | None) -> str:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return "\n".join(lines) or str(text)


def _shapes_of(printed: str) -> list[str]:
    """Return the keys and types of JSON, or of JSON lines; nothing for a text."""
    try:
        return sorted(set(_shape(json.loads(printed), "")))
    except ValueError:
        rows = [line for line in printed.splitlines() if line.startswith("{")]
        shapes = set()
        for row in rows:
            value = json.loads(row)
            shapes |= set(_shape(value, f"<{value.get('type') or value.get('kind') or ''}>"))
        return sorted(shapes)


def _shape(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # Names of files, tools and settings are values, not keys.
            key = "*" if re.search(r"[./ -]|^[A-Z_0-9]+$", key) and "$" not in key else key
            yield from _shape(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _shape(inner, f"{path}[]")
    else:
        kind = {int: "number", float: "number", str: "text", bool: "bool"}.get(type(value), "null")
        yield f"{path}: {kind}"


# The comparison.


def compare(old: dict[str, Any], new: dict[str, Any], missing: list[str]) -> tuple[Any, Any]:
    """Return what is gone and what is added, as lines by kind."""
    gone: dict[str, list[str]] = {"modules": missing}
    added: dict[str, list[str]] = {}
    was, now = old["commands"], new["commands"]
    gone["commands"] = sorted(was.keys() - now.keys())
    added["commands"] = sorted(now.keys() - was.keys())
    both = sorted(was.keys() & now.keys())
    for kind, first, second in (("options", was, now), ("new options", now, was)):
        table = gone if kind == "options" else added
        table[kind] = [
            f"{path} {option}"
            for path in both
            for option in first[path]["options"]
            if option not in second[path]["options"]
        ]
    for table, first, second in ((gone, old, new), (added, new, old)):
        table["public names"] = [
            f"{module}.{name}"
            for module, names in first["names"].items()
            for name in names
            if name not in second["names"].get(module, ())
        ]
        table["JSON keys"] = [
            f"{title}  {key}"
            for title, keys in first["answers"].items()
            for key in _lacking(keys, second["answers"].get(title, []))
        ]
    return gone, added


def _lacking(keys: list[str], others: list[str]) -> list[str]:
    """Return keys that the others have under no type; a null says nothing about the type."""
    known = {other.rpartition(": ")[0] for other in others}
    null = [other.removesuffix(": null") for other in others if other.endswith(": null")]
    empty = tuple(path + inner for path in null for inner in ".[")
    missing = [
        key for key in keys if key.rpartition(": ")[0] not in known and not key.startswith(empty)
    ]
    types: defaultdict[str, set[str]] = defaultdict(set)
    for other in others:
        path, _, kind = other.rpartition(": ")
        types[path].add(kind)
    for key in keys:
        path, _, kind = key.rpartition(": ")
        if path in types and kind != "null" and kind not in types[path] and types[path] != {"null"}:
            missing.append(f"{key} (now {', '.join(sorted(types[path]))})")
    return missing


def texts(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield the help texts that differ, as diffs."""
    for path in sorted(old["commands"].keys() & new["commands"].keys()):
        first, second = old["commands"][path]["help"], new["commands"][path]["help"]
        yield from difflib.unified_diff(first, second, path, path, n=0, lineterm="")


def main() -> int:
    """Compare, print, and return 1 if something is gone."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("--texts", action="store_true")
    options = parser.parse_args()
    described = []
    for folder in (options.before, HERE):
        with tempfile.TemporaryDirectory() as base:
            edition = Edition(folder, Path(base).resolve())
            described.append(edition.describe())
            if folder is HERE:
                missing = edition.can_import(described[0]["modules"])
    old, new = described
    gone, added = compare(old, new, missing)
    for title, table in (("gone", gone), ("added", added)):
        for kind, rows in table.items():
            print(f"{title}: {len(rows)} {kind}")
            for row in rows:
                print(f"    {row}")
    changed = list(texts(old, new))
    print(f"help texts that differ: {sum(line.startswith('--- ') for line in changed)}")
    if options.texts:
        print("\n".join(changed))
    return 1 if any(gone.values()) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(describe()))
    else:
        sys.exit(main())
