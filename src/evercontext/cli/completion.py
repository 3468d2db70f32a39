"""``evercontext completion``: the script that teaches a shell our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Install
      evercontext completion bash > ~/.local/share/bash-completion/completions/evercontext
      evercontext completion zsh  > "${fpath[1]}/_evercontext"
      evercontext completion fish > ~/.config/fish/completions/evercontext.fish
    """
    from evercontext.cli.main import command as root

    kind = get_completion_class(shell)
    assert kind is not None
    print(kind(root, {}, "evercontext", "_EVERCONTEXT_COMPLETE").source())
