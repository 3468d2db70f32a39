"""Load settings from flags, environment, project file, user file, stored keys, defaults."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evercontext.domain.toml import read_toml
from evercontext.errors import ConfigError, UsageError
from evercontext.files.json_file import read_json, replace_json
from evercontext.settings.hook_config import Hook, parse_hooks, unknown_events
from evercontext.settings.provider_keys import KEY_FILE, STORED, exposed, read_key
from evercontext.settings.schema import Settings, rows
from evercontext.settings.untrusted_settings import Project

PROJECT_FILE = "evercontext.toml"
USER_FILE = "config.json"
TRUST_FILE = "trust.json"
LARGEST = 1 << 20
"""Bytes of a project file."""


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Merge the five sources. ``flags`` that are ``None`` count as not given."""
    env = os.environ if environment is None else environment
    return _Loader(flags or {}, env, cwd or Path.cwd()).load()


def load_despite_problems(flags: Mapping[str, Any]) -> tuple[Settings, list[ConfigError]]:
    """Load what can be read, and return what cannot: for looking at a broken installation."""
    problems: list[ConfigError] = []
    return _Loader(flags, os.environ, Path.cwd(), problems).load(), problems


class _Loader:
    def __init__(
        self,
        flags: Mapping[str, Any],
        env: Mapping[str, str],
        cwd: Path,
        problems: list[ConfigError] | None = None,
    ) -> None:
        """With ``problems`` a source that cannot be read is noted there and passed over."""
        self.flags, self.env, self.cwd = flags, env, cwd
        self.problems = problems
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.notices: list[str] = []
        self.home = self._place("home", Path.home() / ".nebula")

    def load(self) -> Settings:
        home = self.home
        root = self._place("root", self.cwd)
        user: dict[str, Any] = {}
        project: dict[str, Any] = {}
        with self._passing_over():
            user = read_json(home / USER_FILE)
        with self._passing_over():
            project = self._project_values(root / PROJECT_FILE, home, user)
        for row in rows():
            self.origins[row.name] = "default"
            with self._passing_over():
                self._take(row, user, project)
        self.values["home"], self.values["root"] = home, root
        return Settings(**self.values, origins=self.origins, notices=tuple(self.notices))

    @contextmanager
    def _passing_over(self) -> Iterator[None]:
        try:
            yield
        except ConfigError as problem:
            if self.problems is None:
                raise
            if str(problem) not in map(str, self.problems):
                self.problems.append(problem)

    def _place(self, name: str, default: Path) -> Path:
        row = next(row for row in rows() if row.name == name)
        path = self.flags.get(name) or self.env.get(row.metadata["env"]) or default
        return Path(os.path.abspath(self.cwd / Path(path).expanduser()))  # noqa: PTH100 - keeps links

    def _take(
        self, row: dataclasses.Field[Any], user: Mapping[str, Any], project: Mapping[str, Any]
    ) -> None:
        name, env = row.name, row.metadata["env"]
        if self.flags.get(name) is not None:
            self._set(row, self.flags[name], "flag")
        elif self.env.get(env):
            self._set(row, self.env[env], f"environment {env}")
        elif name == "hooks":
            self._merge_hooks(row, user.get(name), project.get(name))
        elif name in project:
            self._set(row, project[name], PROJECT_FILE)
        elif name in user and not row.metadata["secret"]:
            self._set(row, user[name], USER_FILE)
        elif not self._take_stored(row):
            self.origins[name] = "default"
            if name in user:
                where = "`evercontext setup`" if name in STORED.values() else "the environment"
                self._notice(f"{name} in {USER_FILE} is ignored: a secret belongs in {where}")

    def _take_stored(self, row: dataclasses.Field[Any]) -> bool:
        """Take the key that ``evercontext setup`` has stored; tell whether there is one."""
        provider = next((p for p, setting in STORED.items() if setting == row.name), None)
        stored = read_key(self.home, provider) if provider else None
        if stored is None:
            return False
        if stored.problem:
            self._notice(f"{stored.problem}; run `evercontext setup`")
        if stored.key is None:
            return False
        if stored.origin == KEY_FILE and exposed(self.home):
            self._notice(f"{self.home / KEY_FILE} can be read by others: chmod 600 it")
        self._set(row, stored.key, stored.origin)
        return True

    def _merge_hooks(self, row: dataclasses.Field[Any], own: Any, brought: Any) -> None:
        """A project adds hooks: it cannot take away those by which the user guards himself."""
        brought_by = ((own, "user", USER_FILE), (brought, "project", PROJECT_FILE))
        hooks: tuple[Hook, ...] = ()
        for value, origin, file in brought_by:
            if value is not None:
                try:
                    hooks += parse_hooks(value, origin)
                except ValueError as problem:
                    fix = "Correct or remove it"
                    raise ConfigError(f"hooks ({file}): {problem}", fix=fix) from None
        files = [file for value, _, file in brought_by if value is not None]
        self.values[row.name] = hooks
        self.origins[row.name] = " and ".join(files) or "default"
        for event in unknown_events(hooks):
            self._notice(f"hooks: no event {event} happens here; see `evercontext hooks list`")

    def _set(self, row: dataclasses.Field[Any], value: Any, origin: str) -> None:
        try:
            self.values[row.name] = (
                row.metadata["parse"](value) if not isinstance(value, Path) else value
            )
        except (ValueError, TypeError) as problem:
            kind = UsageError if origin == "flag" else ConfigError
            raise kind(f"{row.name} ({origin}): {problem}", fix="Correct or remove it") from None
        self.origins[row.name] = origin

    def _project_values(self, path: Path, home: Path, user: Mapping[str, Any]) -> dict[str, Any]:
        content = read_project_file(path)
        if content is None:
            return {}
        values = _parse_toml(content, path)
        known = {row.name: row for row in rows()}
        for name in [n for n in values if n not in known]:
            self._notice(f"{PROJECT_FILE}: unknown setting {name}")
        known_values = {name: value for name, value in values.items() if name in known}
        refused = [name for name in known_values if _never(known[name])]
        for name in refused:
            self._notice(f"{name} in {PROJECT_FILE} is ignored: a repository may not set it")
        if not is_trusted(home, content):
            left_out = [
                name
                for name, value in known_values.items()
                if name not in refused and not self._may_set(known[name], value, user)
            ]
            if left_out:
                self._notice(
                    f"{PROJECT_FILE} sets {', '.join(left_out)}: ignored until you trust this "
                    "content with `evercontext config trust`"
                )
            refused += left_out
        return {name: value for name, value in known_values.items() if name not in refused}

    def _may_set(self, row: dataclasses.Field[Any], value: Any, user: Mapping[str, Any]) -> bool:
        """Tell whether a file that nobody trusts may set this: what only tightens, it may."""
        kind = row.metadata["project"]
        if isinstance(kind, Project):
            return kind is Project.FREE
        parse = row.metadata["parse"]
        try:
            own = parse(user[row.name]) if row.name in user else row.default
            brought = parse(value)
        except (ValueError, TypeError):
            return True  # said plainly where it is read
        return bool(kind(brought, own))

    def _notice(self, text: str) -> None:
        self.notices.append(text)


def _never(row: dataclasses.Field[Any]) -> bool:
    return row.metadata["project"] is Project.NEVER or row.metadata["secret"]


def read_project_file(path: Path) -> bytes | None:
    """Return the project file's bytes; a link or anything but a plain file does not count."""
    try:
        # Never to be waited for: a pipe of that name may have no writer.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise ConfigError(
            f"cannot read {path}: {problem.strerror}",
            fix="Check its permissions, or name another folder with --root",
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    with os.fdopen(file, "rb") as opened:
        content = opened.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(f"{path} is larger than {LARGEST} bytes", fix="Shorten or remove it")
    return content


def project_hooks(content: bytes, root: Path) -> tuple[Hook, ...]:
    """The hooks that a project file brings, trusted or not: to be shown, never to be run."""
    value = _parse_toml(content, root / PROJECT_FILE).get("hooks", {})
    try:
        return parse_hooks(value, "project")
    except ValueError as problem:
        fix = "Correct or remove it"
        raise ConfigError(f"hooks ({PROJECT_FILE}): {problem}", fix=fix) from None


def _parse_toml(content: bytes, path: Path) -> dict[str, Any]:
    try:
        return read_toml(content.decode("utf-8"))
    except ValueError as problem:
        raise ConfigError(f"{path} is not valid TOML: {problem}", fix="Correct the file") from None


def keep(home: Path, name: str, value: Any) -> None:
    """Keep a value in the user file (N14). Keys of providers are refused."""
    row = next((row for row in rows() if row.name == name), None)
    if row is None or row.metadata["secret"] or name in {"home", "root"}:
        fix = "Use the environment"
        if name in STORED.values():
            fix = "Use the environment, or run: evercontext setup"
        raise ConfigError(f"{name} cannot be kept in {USER_FILE}", fix=fix)
    try:
        row.metadata["parse"](value)
    except (ValueError, TypeError) as problem:
        raise ConfigError(f"{name}: {problem}") from None
    replace_json(home / USER_FILE, read_json(home / USER_FILE) | {name: value})


def forget(home: Path, name: str) -> None:
    """Remove a value from the user file."""
    values = read_json(home / USER_FILE)
    if values.pop(name, None) is not None:
        replace_json(home / USER_FILE, values)


def is_trusted(home: Path, content: bytes) -> bool:
    """True if this exact content was trusted before."""
    return hashlib.sha256(content).hexdigest() in read_json(home / TRUST_FILE)


def trust(home: Path, content: bytes, what: str) -> None:
    """Trust this exact content from now on; one changed byte voids it."""
    known = read_json(home / TRUST_FILE)
    replace_json(home / TRUST_FILE, known | {hashlib.sha256(content).hexdigest(): what})


def untrust(home: Path, content: bytes) -> bool:
    """Forget that this content was trusted; tell whether it was."""
    known = read_json(home / TRUST_FILE)
    was = known.pop(hashlib.sha256(content).hexdigest(), None)
    if was is not None:
        replace_json(home / TRUST_FILE, known)
    return was is not None
