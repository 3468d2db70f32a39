"""Undo a task: its file changes, and the memories of it."""

from __future__ import annotations

from dataclasses import replace

from evercontext.agent.open_project import OpenProject
from evercontext.agent.task_report import Rollback
from evercontext.domain.event import Notice, RolledBack
from evercontext.domain.tool import Door
from evercontext.errors import ConfigError
from evercontext.files.journal import Journal
from evercontext.workspace.checkpoints import (
    Trace,
    Undone,
    audit_lines,
    latest,
    list_traces,
    undo,
)


def journal_of(project: OpenProject) -> Journal:
    """Return the journal of the project's files; raise where they are on another machine."""
    if project.workspace.local is None:
        raise ConfigError(
            "the files of this project are behind EC_MCP_URL",
            fix="Unset it, and undo on the machine that has the files",
        )
    return project.workspace.local.journal


async def undoable(project: OpenProject, trace_id: str) -> Trace | None:
    """Return the recorded changes of a task, or ``None``."""
    if project.workspace.local is None:
        return None
    traces = await list_traces(project.workspace.local.journal)
    return next((trace for trace in traces if trace.trace_id == trace_id), None)


async def undo_task(
    project: OpenProject,
    trace_id: str | None,
    *,
    dry_run: bool = False,
    everything: bool = False,
    only_doubtful: bool = False,
    door: Door = Door.RUN,
) -> Undone:
    """Undo one task's changes and log it; without an id, those of the latest task.

    What is remembered of the task is hidden with them, and returns when the undo is undone.
    ``only_doubtful``: only what changed after it while its commands ran in the background.
    """
    journal = journal_of(project)
    trace_id = trace_id or await latest(journal)
    report = await undo(
        journal, trace_id, dry_run=dry_run, everything=everything, only_doubtful=only_doubtful
    )
    for line in () if dry_run else audit_lines(journal, report, door):
        project.events.note(line, trace_id=report.trace_id, needed=False)
    if not dry_run and (report.restored or report.removed):
        if not only_doubtful:
            changed = await project.memory.follow_undo(journal, trace_id, report)
            report = replace(report, memories=changed)
        text = f"undo: {', '.join((*report.restored, *report.removed))} as before"
        project.events.emit(Notice(level="info", text=text), trace_id=report.trace_id)
    return report


def rollback_of(project: OpenProject, trace_id: str) -> Rollback:
    """Return the function that undoes a failed task."""

    async def rollback() -> RolledBack:
        if project.workspace.local is None:
            raise ConfigError("the files are behind EC_MCP_URL", fix="Undo it there")
        journal = project.workspace.local.journal
        report = await undo(journal, trace_id)
        for line in audit_lines(journal, report, Door.RUN):
            project.events.note(line, trace_id=trace_id, needed=False)
        await project.memory.follow_undo(journal, trace_id, report)
        return RolledBack(
            restored=report.restored,
            removed=report.removed,
            kept=tuple({"path": file.path, "reason": file.reason} for file in report.skipped),
            undo=report.trace_id,
        )

    return rollback
