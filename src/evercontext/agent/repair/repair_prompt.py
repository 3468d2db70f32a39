"""Build the prompt for a model that repairs: the failures and the code around them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.verification import Findings, Repairing
from evercontext.domain.prompt_template import fill
from evercontext.workspace.failures.failure import CodeLine, Failure

MOST_FAILURES = 10
MOST_PLACES = 6
MOST_EVIDENCE = 3
AROUND = 8
LONGEST_OUTPUT = 4_000
_LONGEST_CHUNK = 1_200


async def describe(
    task: Repairing, findings: Findings, project: ProjectView, tried: Sequence[str]
) -> str:
    """Return the request for one round of repair."""
    template = (files("evercontext.agent") / "prompts" / "repair.md").read_text(encoding="utf-8")
    facts = {
        "task": task.task,
        "changed": ", ".join(task.changed[:50]) or "none",
        "count": str(len(findings.failures)),
        "failures": "\n".join(map(line_of, findings.failures[:MOST_FAILURES])),
        "code": await _code(findings.failures, project),
        "evidence": await _evidence(findings.failures, project),
        "output": findings.output[-LONGEST_OUTPUT:],
        "tried": _tried(tried),
    }
    return fill(template, facts).rstrip()


def line_of(failure: Failure) -> str:
    """One failure in one line."""
    where = f" at {failure.where}" if failure.where else ""
    which = f" in {failure.test}" if failure.test else ""
    message = " ".join(failure.message.split())[:400]
    return f"- {failure.tool} {failure.kind}{where}{which}: {message}"


async def _code(failures: Sequence[Failure], project: ProjectView) -> str:
    places: dict[CodeLine, None] = {}
    for failure in failures[:MOST_FAILURES]:
        if failure.file and failure.line:
            places[CodeLine(failure.file, failure.line)] = None
        places |= dict.fromkeys(failure.frames[-2:])
    shown = [await _excerpt(place, project) for place in list(places)[:MOST_PLACES]]
    return "\n\n".join(part for part in shown if part) or "(no place is named)"


async def _excerpt(place: CodeLine, project: ProjectView) -> str:
    text = await project.read(place.file)
    if text is None:
        return ""
    lines = text.splitlines()
    first = max(1, place.line - AROUND)
    numbered = [
        f"{'>' if number == place.line else ' '} {number:4} {line[:200]}"
        for number, line in enumerate(lines[first - 1 : place.line + AROUND], first)
    ]
    return "\n".join([f"{place.file}:", *numbered])


async def _evidence(failures: Sequence[Failure], project: ProjectView) -> str:
    """Return the hits of the code index for the first failure; the trace keeps them as evidence."""
    if not failures:
        return ""
    query = " ".join(failures[0].message.split())[:300] or "error"
    result = await project.toolbox.call(
        "search_code", {"query": query, "top_k": MOST_EVIDENCE}, project.caller
    )
    chunks = result.data.get("chunks", ()) if isinstance(result.data, dict) else ()
    shown = [f"{c['path']} {c['span']}\n{c['text'][:_LONGEST_CHUNK]}" for c in chunks]
    return "\nFound in the project by search:\n" + "\n\n".join(shown) + "\n" if shown else ""


def _tried(tried: Sequence[str]) -> str:
    return (
        "\nTried and taken back:\n" + "\n".join(f"- {attempt}" for attempt in tried) + "\n"
        if tried
        else ""
    )
