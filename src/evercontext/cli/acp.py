"""``evercontext acp``: the agent inside an editor."""

from __future__ import annotations

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.domain.outcome import Outcome


@click.command("acp")
@click.option("-m", "--model", metavar="NAME", help="provider:model, see `model list`.")
def command(model: str | None) -> int:
    """Serve the agent to an editor over stdio.

    Speaks the Agent Client Protocol: Zed, JetBrains, Neovim and others start this command
    themselves. The editor names the project, shows what happens and asks you for approval.
    """
    run_until_stopped(_serve(model))
    return int(Outcome.DONE)


async def _serve(model: str | None) -> None:
    from evercontext.server.acp import serve_acp

    await serve_acp(model)
