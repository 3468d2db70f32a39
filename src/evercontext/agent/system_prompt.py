"""Write the system prompt: a template and the facts of this run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Literal

from evercontext.domain.message import Message, system
from evercontext.domain.prompt_template import fill
from evercontext.domain.tool import Mode

MOST_FILES = 200
MOST_CHANGED = 40
_FROM_NOTHING = {
    True: "The project has no code yet. Before you create a file, ask the user in one message for"
    " what you must know and were not told: what it is for and who uses it, language and tools,"
    " what the first version must do, how it will be checked. At most five short questions, each"
    " with the answer you would choose. Then build it step by step: the smallest part that runs,"
    " checked, then the next one.",
    False: "The project has no code yet, and nobody can answer questions now. Choose the simplest"
    " reading of the task, build it step by step, the smallest part that runs first, and name in"
    " your report what you assumed.",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The description of the project for the agent."""

    root_name: str
    tree: Sequence[str] = ()
    instructions: str = ""
    """The project's own AGENTS.md."""
    skills: str = ""
    """Skills that can be loaded, one line each."""
    git_status: str = ""
    """Branch and changed files, as they were when the work began."""
    attended: bool = False
    """Somebody is there to answer questions."""


Part = Literal["agent", "plan", "planner"]


def part_in(mode: Mode) -> Part:
    """Which prompt a mode has: plan mode has one of its own."""
    return "plan" if mode is Mode.PLAN else "agent"


def brief(surroundings: Surroundings, part: Part, mode: Mode = Mode.AGENT) -> Message:
    """Return the system message for one part to play."""
    prompt = files("evercontext.agent") / "prompts" / f"{part}.md"
    template = prompt.read_text(encoding="utf-8")
    facts = {
        "root_name": surroundings.root_name,
        "system": platform.system(),
        "date": datetime.now(UTC).date().isoformat(),
        "mode": mode.value,
        "git": _git(surroundings.git_status),
        "tree": _tree(surroundings.tree),
        "beginning": _beginning(surroundings),
        "instructions": _instructions(surroundings.instructions) + _skills(surroundings.skills),
    }
    return system(fill(template, facts).rstrip())


def _tree(paths: Sequence[str]) -> str:
    if not paths:
        return "(the directory is empty)"
    shown = [f"- {path}" for path in paths[:MOST_FILES]]
    more = len(paths) - len(shown)
    return "\n".join(shown + ([f"- … and {more} more"] if more > 0 else []))


def _git(status: str) -> str:
    if not status.strip():
        return ""
    lines = status.strip().splitlines()
    more = [f"… and {len(lines) - MOST_CHANGED} more"] if len(lines) > MOST_CHANGED else []
    shown = "\n".join([*lines[:MOST_CHANGED], *more])
    return f"Git status when the work began:\n{shown}\n"


def _beginning(surroundings: Surroundings) -> str:
    """Return how to begin a project that has nothing in it yet."""
    if any(not _says_nothing(path) for path in surroundings.tree):
        return ""
    return f"\n{_FROM_NOTHING[surroundings.attended]}\n"


def _says_nothing(path: str) -> bool:
    name = path.rstrip("/").rpartition("/")[2].lower()
    return name.startswith(".") or name.split(".")[0] in ("license", "readme", "agents")


def _instructions(text: str) -> str:
    return f"\nThe project's instructions (AGENTS.md):\n{text.strip()}" if text.strip() else ""


def _skills(lines: str) -> str:
    if not lines:
        return ""
    return f"\n\nSkills: if the task is one of these kinds, call load_skill first.\n{lines}"
