"""Taking a task's changes back, for every way in."""

from __future__ import annotations

from dataclasses import replace

from evercontext.app.house import EverContext
from evercontext.domain.event import Notice
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
from evercontext.workspace.workspace import LocalWorkspace


def journal_of(app: EverContext) -> Journal:
    """The journal of the project's files, where they are on this machine."""
    if not isinstance(app.workspace, LocalWorkspace):
        raise ConfigError(
            "the files of this project are behind EC_MCP_URL",
            fix="Unset it, and undo on the machine that has the files",
        )
    return app.workspace.journal


async def undoable(app: EverContext, trace_id: str) -> Trace | None:
    """What is known of a task's changes in this project, or nothing."""
    if not isinstance(app.workspace, LocalWorkspace):
        return None
    found = await list_traces(app.workspace.journal)
    return next((trace for trace in found if trace.trace_id == trace_id), None)


async def undo_task(
    app: EverContext,
    trace_id: str | None,
    *,
    dry_run: bool = False,
    everything: bool = False,
    door: Door = Door.RUN,
) -> Undone:
    """Take back one task's changes and say so in the log; without an id, the latest one's.

    What is remembered of the task goes with them, and comes back with them.
    """
    journal = journal_of(app)
    trace_id = trace_id or await latest(journal)
    done = await undo(journal, trace_id, dry_run=dry_run, everything=everything)
    for line in () if dry_run else audit_lines(journal, done, door):
        app.events.note(line, trace_id=done.trace_id, needed=False)
    if not dry_run and (done.restored or done.removed):
        changed = await app.memory.follow_undo(journal, trace_id, done)
        done = replace(done, memories=changed)
        told = f"undo: {', '.join((*done.restored, *done.removed))} as before"
        app.events.emit(Notice(level="info", text=told), trace_id=done.trace_id)
    return done
