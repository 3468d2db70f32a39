"""Detect how this copy was installed, and the commands that fit.

A hint that says ``pip install`` is wrong for everybody who used pipx or uv: their environment has
no pip, or another one. So every message that names such a command asks here for it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from evercontext.files.json_file import read_json_leniently

NAME = "evercontext"
Way = Literal["uv tool", "uvx", "pipx", "editable checkout", "pip"]


@dataclass(frozen=True, slots=True)
class Installation:
    """One installed copy."""

    way: Way
    python: str
    source: str = NAME
    """What was installed: the name on the registry, or a folder, file or address."""
    extras: tuple[str, ...] = ()
    """Extras that the installer remembers and that another installation must name again."""
    has_pip: bool = True

    def with_extra(self, extra: str) -> list[str]:
        """Return the command that adds an extra to this copy."""
        requirement = self._requirement(tuple(sorted({*self.extras, extra})))
        match self.way:
            case "uv tool":
                words = ["uv", "tool", "install", requirement]
            case "uvx":
                words = ["uvx", "--from", requirement, NAME]
            case "pipx":
                # Installing again would replace the environment that is running.
                words = ["pipx", "inject", NAME, *requirements_of(extra)]
            case "editable checkout":
                words = [*self._pip("install"), "--editable", requirement]
            case _:
                words = [*self._pip("install"), requirement]
        return words

    def hint(self, extra: str) -> str:
        """Return that command as a person types it."""
        return shlex.join(self.with_extra(extra))

    def upgrade(self) -> str:
        """Return the command that brings the newest version."""
        match self.way:
            case "uv tool":
                return f"uv tool upgrade {NAME}"
            case "uvx":
                return shlex.join(["uvx", "--refresh", "--from", self.source, NAME])
            case "pipx":
                return f"pipx upgrade {NAME}"
            case "editable checkout":
                return shlex.join(["git", "-C", self.source, "pull"])
            case _:
                return shlex.join([*self._pip("install"), "--upgrade", self.source])

    def remove(self) -> str:
        """Return the command that removes the program; its home folder stays."""
        match self.way:
            case "uv tool":
                return f"uv tool uninstall {NAME}"
            case "uvx":
                return "uv cache clean"
            case "pipx":
                return f"pipx uninstall {NAME}"
            case _:
                return shlex.join([*self._pip("uninstall"), NAME])

    def _pip(self, verb: str) -> list[str]:
        if self.has_pip:
            return [self.python, "-m", "pip", verb]
        return ["uv", "pip", verb, "--python", self.python]

    def _requirement(self, extras: tuple[str, ...]) -> str:
        listed = f"[{','.join(extras)}]" if extras else ""
        if "://" in self.source or self.source.endswith((".whl", ".tar.gz")):
            address = self.source if "://" in self.source else Path(self.source).as_uri()
            return f"{NAME}{listed} @ {address}"
        return f"{self.source}{listed}"


def install_hint(extra: str) -> str:
    """Return what to do to get an extra, as an error says it."""
    return f"Run: {this_installation().hint(extra)}"


def requirements_of(extra: str) -> list[str]:
    """Return the packages that an extra stands for."""
    marker = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    try:
        listed = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return []
    pairs = (line.partition(";") for line in listed)
    return [requirement.strip() for requirement, _, about in pairs if marker.search(about)]


@lru_cache(maxsize=1)
def this_installation() -> Installation:
    """Return how the running copy was installed."""
    has_pip = importlib.util.find_spec("pip") is not None
    return replace(
        detect(Path(sys.prefix), _direct_url()), python=_short(sys.executable), has_pip=has_pip
    )


def detect(prefix: Path, direct_url: dict[str, Any] | None = None) -> Installation:
    """Return how the copy in the environment at ``prefix`` was installed."""
    if (receipt := prefix / "uv-receipt.toml").is_file():
        return _uv_tool(receipt)
    if (record := prefix / "pipx_metadata.json").is_file():
        return _pipx(record)
    source = _source(direct_url)
    if prefix.parent.name.startswith(("archive-v", "environments-v")):
        # An environment inside uv's own cache: it lives for one run of uvx.
        return Installation("uvx", "", source)
    if ((direct_url or {}).get("dir_info") or {}).get("editable"):
        return Installation("editable checkout", "", source)
    return Installation("pip", "", source)


def _uv_tool(receipt: Path) -> Installation:
    try:
        listed = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
        own = next(entry for entry in listed if entry.get("name") == NAME)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return Installation("uv tool", "")
    places = (own.get(key) for key in ("directory", "editable", "path", "url"))
    source = next((str(place) for place in places if place), NAME)
    if git := own.get("git"):
        source = f"git+{git}"
    return Installation("uv tool", "", source, tuple(own.get("extras") or ()))


def _pipx(record: Path) -> Installation:
    try:
        main = (read_json_leniently(record) or {})["main_package"]
        package = str(main["package_or_url"])
    except (KeyError, TypeError):
        return Installation("pipx", "")
    source, bracket, rest = package.partition("[")
    extras = tuple(rest.rstrip("]").split(",")) if bracket else ()
    return Installation("pipx", "", source, extras)


def _direct_url() -> dict[str, Any] | None:
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
        value = json.loads(text) if text else None
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _source(direct_url: dict[str, Any] | None) -> str:
    """What PEP 610 says was installed; nothing is said of what came from a registry."""
    address = str((direct_url or {}).get("url") or "")
    if address.startswith("file://"):
        return unquote(urlsplit(address).path)
    control = ((direct_url or {}).get("vcs_info") or {}).get("vcs")
    return f"{control}+{address}" if control else address or NAME


def _short(executable: str) -> str:
    """The interpreter as a person would write it: the activated one is just ``python``."""
    import shutil

    return "python" if shutil.which("python") == executable else executable
