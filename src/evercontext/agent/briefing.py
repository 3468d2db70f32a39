"""The system prompt: a template and what is true right now."""

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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the agent is told of the place it works in."""

    root_name: str
    tree: Sequence[str] = ()
    instructions: str = ""
    """The project's own AGENTS.md."""
    skills: str = ""
    """What can be loaded, one line each."""


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
        "tree": _tree(surroundings.tree),
        "instructions": _instructions(surroundings.instructions) + _skills(surroundings.skills),
    }
    return system(fill(template, facts).rstrip())


def _tree(paths: Sequence[str]) -> str:
    if not paths:
        return "(the directory is empty)"
    shown = [f"- {path}" for path in paths[:MOST_FILES]]
    more = len(paths) - len(shown)
    return "\n".join(shown + ([f"- … and {more} more"] if more > 0 else []))


def _instructions(text: str) -> str:
    return f"\nThe project's instructions (AGENTS.md):\n{text.strip()}" if text.strip() else ""


def _skills(lines: str) -> str:
    if not lines:
        return ""
    return f"\n\nSkills: if the task is one of these kinds, call load_skill first.\n{lines}"
