"""Find, list and load the skills of a user and a project.

A project's skill is listed and never loaded until exactly what its folder holds was trusted.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evercontext.agent import skill_file as skills
from evercontext.agent.skill_file import FILE, Skill
from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import EverContextError, NotFound, UntrustedConfig
from evercontext.files import file_io
from evercontext.files.contained_paths import Parts, Root
from evercontext.files.policy import FilePolicy
from evercontext.settings import is_trusted, trust, untrust

TOOL = "load_skill"
PROJECT_FOLDERS = (".agents/skills", ".claude/skills")
MOST_SKILLS = 50
MOST_FILES = 200
MOST_BYTES = 1 << 20
_LISTED = 20
_LISTED_EACH = 160
_LISTED_WHOLE = 2_000

_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 64},
        "file": {"type": "string", "maxLength": 300, "description": "Another file of the skill."},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Skills:
    """Where skills lie, and whose."""

    root: Path
    home: Path
    """EverContext's own folder: it holds the list of trusted content, and perhaps skills."""
    user: Path
    """The user's home directory."""

    def all(self) -> list[Skill]:
        """Every skill, the user's first; of two with one name the first counts."""
        skills: dict[str, Skill] = {}
        for skill in self._read_all():
            skills.setdefault(skill.name, skill)
            if len(skills) >= MOST_SKILLS:
                break
        return list(skills.values())

    def find(self, name: str) -> Skill:
        """The skill of that name, or an error that helps."""
        known = {skill.name: skill for skill in self.all()}
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=3) or sorted(known)[:10]
        fix = f"There are: {', '.join(near)}" if near else "There are no skills here"
        raise NotFound(f"there is no skill {name[:64]!r}", fix=fix)

    def load(self, name: str, file: str | None = None) -> str:
        """Return the text of a skill for the model, read and checked anew each time."""
        skill = self.find(name)
        if not skill.usable:
            fix = f"The user can read and trust it: evercontext skills trust {skill.name}"
            raise UntrustedConfig(f"the skill {skill.name} is not loaded: {skill.state}", fix=fix)
        if file is None:
            others = [path for path in sorted(skill.files) if path != FILE]
            more = f"\nOther files, by load_skill with file: {', '.join(others)}" if others else ""
            return f"Skill {skill.name}: {skill.description}{more}\n\n{skill.body}"
        if file not in skill.files:
            raise NotFound(f"the skill {skill.name} has no file {file[:80]!r}")
        with Root.open(skill.place) as root:
            content = _read(root, tuple(file.split("/")))
        if skills.hashed(content) != skill.files[file]:
            raise UntrustedConfig(f"{file} changed just now", fix="Load the skill again")
        return file_io.decode(content)

    def trust(self, skill: Skill) -> None:
        """Trust the present content of this skill."""
        trust(self.home, skill.manifest(), f"skill {skill.place}")

    def untrust(self, skill: Skill) -> bool:
        """Trust it no longer; tell whether it was."""
        return untrust(self.home, skill.manifest())

    def _read_all(self) -> Iterator[Skill]:
        for folder in (self.home / "skills", self.user / ".agents" / "skills"):
            yield from self._below(folder, "user")
        for name in PROJECT_FOLDERS:
            folder = self.root / name
            # A link could make anything of this machine look like a skill of the project.
            if not any(place.is_symlink() for place in (folder.parent, folder)):
                yield from self._below(folder, "project")

    def _below(self, folder: Path, origin: str) -> Iterator[Skill]:
        try:
            names = sorted(place.name for place in folder.iterdir())
        except OSError:
            return
        for name in names[:MOST_SKILLS]:
            place = folder / name
            if origin == "project" and place.is_symlink():
                continue
            if (place / FILE).is_file():
                yield self._judged(read_skill(place, origin))

    def _judged(self, skill: Skill) -> Skill:
        # What lies in the user's own folders was put there by the user.
        trusted = skill.origin == "user" or is_trusted(self.home, skill.manifest())
        return replace(skill, trusted=trusted)


def read_skill(place: Path, origin: str) -> Skill:
    """Read one folder; an unreadable one becomes a skill with a problem."""
    real = str(place.resolve())
    try:
        with Root.open(place) as root:
            contents = dict(_contents(root))
        text = file_io.decode(contents[FILE])
    except (EverContextError, OSError, KeyError) as why:
        return Skill(place.name[:64], "", real, origin, problem=f"cannot be read: {why}"[:200])
    name, description, body, problem = skills.parse(text, place.name)
    files = {path: skills.hashed(content) for path, content in contents.items()}
    return Skill(name, description, real, origin, body, files, problem=problem)


def listed(skills: Sequence[Skill]) -> str:
    """The usable skills as a prompt names them, within bounds."""
    usable = [skill for skill in skills if skill.usable]
    lines: list[str] = []
    for skill in usable[:_LISTED]:
        line = f"- {skill.name}: {skill.description[:_LISTED_EACH]}"
        if sum(map(len, lines)) + len(line) > _LISTED_WHOLE:
            break
        lines.append(line)
    more = len(usable) - len(lines)
    return "\n".join(lines + ([f"- … and {more} more"] if more else []))


def skill_tool(skills: Skills) -> Tool:
    """The tool that gives a model one skill."""

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        name, file = arguments["name"], arguments.get("file")
        return ToolResult(await asyncio.to_thread(skills.load, name, file))

    return Tool(
        name=TOOL,
        description="Read how a kind of task is done here. Load a skill when the task is its kind.",
        arguments=_SCHEMA,
        effects=Effect.READ,
        run=run,
    )


def _contents(root: Root) -> Iterator[tuple[str, bytes]]:
    """Every plain file of a folder; links are passed over."""
    pending: list[Parts] = [()]
    files = size = 0
    while pending:
        parts = pending.pop()
        fd = root.beneath.open(root.fd, parts, os.O_RDONLY)
        try:
            entries = [
                (name, root.kernel.lstat(name, fd)) for name in sorted(root.kernel.names(fd))
            ]
        finally:
            root.kernel.close(fd)
        for name, status in entries:
            here = (*parts, name)
            if stat.S_ISDIR(status.st_mode) and len(here) < 8:
                pending.append(here)
            elif stat.S_ISREG(status.st_mode):
                files, size = files + 1, size + status.st_size
                if files > MOST_FILES or size > MOST_BYTES:
                    raise NotFound(f"more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
                yield "/".join(here), _read(root, here)


def _read(root: Root, parts: Parts) -> bytes:
    policy = FilePolicy(max_bytes=MOST_BYTES, protected=(), hard_links=True)
    with root.place(parts) as safe:
        return file_io.read(safe, policy).data
