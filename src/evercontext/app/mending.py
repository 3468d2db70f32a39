"""Checks and repairs, as the settings want them."""

from __future__ import annotations

from evercontext.agent.repair.mender import Mender
from evercontext.agent.verify import Checker, Repair, Verify, no_repair
from evercontext.settings import Settings
from evercontext.workspace.workspace import LocalWorkspace, Workspace


def checked_and_mended(
    checker: Checker, settings: Settings, workspace: Workspace, *, by_default: bool, tiny: bool
) -> tuple[Verify, Repair]:
    """Return what runs the checks after a change, and what mends red ones.

    ``tiny``: a model that cannot be expected to mend anything is not asked to; the fixers work.
    """
    wanted = by_default if settings.repair is None else settings.repair
    if not wanted or not isinstance(workspace, LocalWorkspace):
        return checker, no_repair
    rounds = 0 if tiny else settings.repair_rounds
    root = str(settings.root.resolve())
    mender = Mender(checker, workspace, checker.events, root, rounds)
    return mender.check, mender
