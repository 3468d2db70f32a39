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
      ln -s evercontext ~/.local/share/bash-completion/completions/nebula
      evercontext completion zsh  > "${fpath[1]}/_evercontext"
      evercontext completion fish > ~/.config/fish/completions/evercontext.fish
    """
    from evercontext.cli.main import command as root

    kind = get_completion_class(shell)
    assert kind is not None
    # Both names of the command complete, from one script.
    scripts = [
        kind(root, {}, name, f"_{name.upper()}_COMPLETE").source()
        for name in ("evercontext", "nebula")
    ]
    if shell == "zsh":
        # What zsh loads by itself may name several commands, but only in its first line.
        own = scripts[0].replace("#compdef evercontext", "#compdef evercontext nebula")
        scripts = [own.replace("_completion evercontext", "_completion evercontext nebula")]
    print("\n".join(scripts))
