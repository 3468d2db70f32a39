"""P1, P4, P5, C1, P16: the real Codex CLI and Gemini CLI as models, with scripted vendor APIs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evercontext.process.sandbox import available
from tests.cli.command import Ended, evercontext
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import BACKEND
from tests.real.users import USERS, files
from tests.real.vendor_api import VendorApi, call, text

pytestmark = pytest.mark.skipif(
    not any(layer.works for layer in available()), reason="no sandbox works here"
)
MODELS = {"codex": "codex-cli", "gemini": "gemini-cli:gemini-2.5-pro"}
SHELLS = {
    "codex": call("shell", command=["touch", "touched"]),
    "gemini": call("run_shell_command", command="touch touched"),
}
NEWEST = ("codex=newest", "gemini=newest")
"""What is tried with these alone, the unit tests play from recordings of all versions."""
WRITE = {
    "tool_calls": [
        {"name": "writeFile", "parameters": {"path": "hello.txt", "content": "こんにちは\n"}}
    ]
}


def run(installed: Installed, api: VendorApi, project: Path) -> Ended:
    """Let the program do one task in a project; its own folder must stay as it was."""
    name = installed.program.name
    env = USERS[name](installed, api.url)
    before = files(f".{name}")
    words = ["--model", MODELS[name], "--root", str(project), "--task", "Write hello.txt", "--json"]
    ended = evercontext("run", *words, env=env)
    assert files(f".{name}") == before, "the program left files of its own behind"
    return ended


@real(BACKEND, "codex", "gemini")
def test_a_task_is_done(installed: Installed, tmp_path: Path) -> None:
    """P1, C1, P16: our tool writes a file, nothing is left behind, doctor names the version."""
    with VendorApi(text(json.dumps(WRITE)), text('{"final_answer": "Written."}')) as api:
        ended = run(installed, api, tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "hello.txt").read_text() == "こんにちは\n"
    assert json.loads(ended.out)["result"] == "Written."
    ended = evercontext("doctor", "--json", env=USERS[installed.program.name](installed, api.url))
    assert f"{installed.version} at {installed.command}" in ended.out


@real(BACKEND, *NEWEST)
@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, 1, "rejected the request"),
        (401, 1, "refused the login"),
        (429, 75, "reached a limit"),
        # Codex 0.166 has words of its own for it, without the status.
        (500, 75, "500|high demand"),
    ],
)
def test_failures_have_our_words_and_exit_codes(
    status: int, code: int, words: str, installed: Installed, tmp_path: Path
) -> None:
    """P4."""
    with VendorApi() as api:
        error: dict[str, Any] = {"code": status, "message": "Not today", "status": "X"}
        api.failure = (status, {"error": error})
        ended = run(installed, api, tmp_path)
    assert ended.code == code, ended.err + ended.out
    assert re.search(words, ended.err + ended.out)


@real(BACKEND, *NEWEST)
def test_its_own_tools_have_no_effect(installed: Installed, tmp_path: Path) -> None:
    """P2, P3: one call; ``benchmarks/vendor_programs.py`` plays forty."""
    with VendorApi(SHELLS[installed.program.name], text('{"final_answer": "Done."}')) as api:
        run(installed, api, tmp_path)
    assert not list(tmp_path.rglob("touched"))
    assert not list(Path.home().rglob("touched"))
