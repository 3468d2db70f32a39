"""Gather the tools over the user's files."""

from __future__ import annotations

from evercontext.domain.tool import Tool
from evercontext.workspace.read_ledger import ReadLedger
from evercontext.workspace.read_tools import reading_tools
from evercontext.workspace.workspace import Workspace
from evercontext.workspace.write_tools import writing_tools


def workspace_tools(workspace: Workspace) -> list[Tool]:
    """Return the file tools over a workspace, wherever it is."""
    ledger = ReadLedger()
    return [*reading_tools(workspace, ledger), *writing_tools(workspace, ledger)]
