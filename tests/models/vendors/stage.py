"""A vendor's program, played by a small executable from recordings of the real ones."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from evercontext.models.vendor_cli import Vendor, VendorCli, variables
from evercontext.models.vendors.gemini import Gemini
from evercontext.process.environment import filtered

RECORDINGS = Path(__file__).parent / "recordings"
CODEX = ("0.50.0", "0.98.0", "0.120.0", "0.166.0")
GEMINI = ("0.33.0", "0.40.0", "0.61.0")

PLAYER = """#!{python}
import json, os, sys, time
play = json.loads({play!r})
words = sys.argv[1:]
chosen = words[words.index("--model") + 1] if "--model" in words else ""
play = {{**play, **play["by_model"].get(chosen, {{}})}}
if words == ["--version"]:
    print(play["version"], end=""); sys.exit()
if words[-1:] == ["--help"]:
    print(play["options"]); sys.exit()
if words == ["features", "list"]:
    print(play["features"]); sys.exit()
prompt = sys.stdin.read()
def attempt(act):
    try:
        return str(act())[:2000]
    except OSError as error:
        return type(error).__name__
schema = [open(word).read() for word in words if word.endswith("schema.json")]
seen = {{"argv": words, "stdin": prompt, "cwd": os.listdir("."), "env": dict(os.environ),
        "schema": schema}}
{extra}
answer = json.dumps(json.dumps(seen))[1:-1]
sys.stdout.write(play["stdout"].replace("@SEEN@", answer))
sys.stderr.write(play["stderr"])
sys.stdout.flush()
time.sleep(play["sleep"])
sys.exit(play["exit"])
"""


def recording(program: str, version: str) -> dict[str, Any]:
    """What the real program said."""
    text = (RECORDINGS / f"{program}-{version}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def newest(vendor: Vendor) -> str:
    return (GEMINI if isinstance(vendor, Gemini) else CODEX)[-1]


class Stage:
    """A folder on PATH with one vendor's program in it, and a user's home."""

    def __init__(self, folder: Path, vendor: Vendor, version: str | None = None) -> None:
        self.folder = folder
        self.vendor = vendor
        self.home = folder / "user"
        self.home.mkdir(exist_ok=True)
        self.bin = folder / "bin"
        self.bin.mkdir(exist_ok=True)
        self.state = folder / "state"
        known = recording(vendor.program, version or newest(vendor))
        self.facts = {name: known[name] for name in ("version", "options", "features")}
        self.env: dict[str, str] = {}

    def installs(
        self,
        stdout: str = "",
        *,
        stderr: str = "",
        code: int = 0,
        sleep: float = 0,
        extra: str = "",
        by_model: dict[str, Any] | None = None,
        **facts: str,
    ) -> None:
        """Put the program on PATH; ``@SEEN@`` in its output is what it saw.

        ``by_model``: what else it plays if asked for that model.
        """
        play = {
            **self.facts,
            **facts,
            "stdout": stdout,
            "stderr": stderr,
            "exit": code,
            "sleep": sleep,
            "by_model": by_model or {},
        }
        program = self.bin / self.vendor.program
        text = PLAYER.format(python=sys.executable, play=json.dumps(play), extra=extra)
        program.write_text(text, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def plays(
        self,
        stdout: str = "",
        *,
        sandbox: str = "auto",
        timeout: float = 60.0,
        max_output: int = 8_000_000,
        **play: Any,
    ) -> VendorCli:
        """Install it and return it as a model."""
        self.installs(stdout, **play)
        return self.model(sandbox=sandbox, timeout=timeout, max_output=max_output)

    def model(
        self, *, sandbox: str = "auto", timeout: float = 60.0, max_output: int = 8_000_000
    ) -> VendorCli:
        """Return the installed program as a model."""
        environment = {
            "PATH": f"{self.bin}:{os.defpath}",
            "HOME": str(self.home),
            "GEMINI_API_KEY": "k",
            "OPENAI_API_KEY": "k",
            **self.env,
        }
        return VendorCli(
            self.vendor,
            env=filtered(environment, extra=variables(self.vendor, environment)),
            state=self.state,
            sandbox=sandbox,
            timeout=timeout,
            max_output=max_output,
        )

    def says(self, text: str) -> str:
        """Its output for an answer."""
        return gemini_says(text) if isinstance(self.vendor, Gemini) else codex_says(text)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def gemini_says(text: str) -> str:
    stats = {
        "total_tokens": 25113,
        "input_tokens": 24939,
        "output_tokens": 20,
        "cached": 21263,
        "tool_calls": 0,
    }
    return "Loaded cached credentials.\n" + lines(
        {"type": "init", "session_id": "4f1c", "model": "gemini-3-pro"},
        {"type": "message", "role": "user", "content": "…"},
        {"type": "message", "role": "assistant", "content": text[:9], "delta": True},
        {"type": "message", "role": "assistant", "content": text[9:], "delta": True},
        {"type": "result", "status": "success", "stats": stats},
    )


def codex_says(text: str) -> str:
    return lines(
        {"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"},
        {"type": "turn.started"},
        {
            "type": "item.completed",
            "item": {"id": "item_0", "type": "reasoning", "text": "**Thinking**"},
        },
        {
            "type": "item.completed",
            "item": {"id": "item_1", "type": "agent_message", "text": text},
        },
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122},
        },
    )
