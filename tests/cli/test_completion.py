from __future__ import annotations

import shutil
import subprocess

import pytest

from evercontext.cli.main import COMMANDS
from tests.cli.command import EVERCONTEXT, evercontext


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_our_command(shell: str) -> None:
    script = evercontext("completion", shell)
    assert script.code == 0
    assert "_EVERCONTEXT_COMPLETE" in script.out


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_commands_and_options() -> None:
    def offered(words: str, number: int) -> list[str]:
        ended = evercontext(
            env={
                "_EVERCONTEXT_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(number),
            }
        )
        return [line.split(",")[1] for line in ended.out.splitlines()]

    assert offered("evercontext ", 1) == list(COMMANDS)
    assert offered("evercontext tr", 1) == ["trace"]
    assert "--dry-run" in offered("evercontext run --d", 2)
    assert offered("evercontext trace ", 2) == ["list", "show", "tail"]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_accepts_the_script() -> None:
    script = subprocess.run([EVERCONTEXT, "completion", "bash"], capture_output=True, check=True)
    done = subprocess.run(["bash", "-n"], input=script.stdout, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
