"""V14: every setting is read where something is done with it, by the real commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evercontext.settings.schema import rows
from evercontext.testing import tiny_repository
from tests.cli.command import EVERCONTEXT, evercontext
from tests.journeys.story import call, script, write

# Runs in every process of the commands: notes which module reads which setting of a Settings.
RECORDER = """
import os, sys

def _begin():
    from evercontext.settings.schema import Settings, rows
    names = {row.name for row in rows()}
    reads = set()
    def get(self, name):
        if name in names:
            read = name, sys._getframe(1).f_globals.get("__name__", "")
            # At once: a process that is told to stop leaves without an end.
            if read not in reads:
                reads.add(read)
                with open(os.environ["READS"], "a") as file:
                    file.write(f"{read[0]} {read[1]}\\n")
        return object.__getattribute__(self, name)
    Settings.__getattribute__ = get

if os.environ.get("READS"):
    _begin()
"""
LOOKING_ON = (
    "dataclasses",
    "evercontext.settings",
    "evercontext.cli.config",
    "evercontext.cli.doctor",
    "evercontext.events.redaction",
)
"""Modules that read settings to copy, list or mask them: that is no use of a setting."""
IN_USE = ("evercontext.settings.directories", "evercontext.settings.build_file_policy")
"""Of those, the ones that decide by a setting: which folder may be a root, which files are open."""

ASSEMBLE = """
import asyncio, json
from evercontext.context.assembler import ContextAssemblerService

class Stored:
    role, message_type = "user", "user"
    def __init__(self, n):
        self.content, self.similarity, self.metadata = f"stored {n}", 1.0 - n / 100, {}

class Source:
    limits = []
    async def list(self, user_id, limit):
        self.limits.append(limit)
        return [Stored(n) for n in range(limit)], None
    async def retrieve(self, query, options):
        self.limits.append(options.limit)
        return [Stored(n) for n in range(50)]

async def main():
    source = Source()
    service = ContextAssemblerService(source, source, None)
    context = await service.assemble_context("hello", "ann")
    print(json.dumps({"system": context.messages[0]["content"], "limits": sorted(source.limits),
                      "token_limit": context.metadata.token_limit,
                      "memories": context.metadata.semantic_memory_count}))

asyncio.run(main())
"""
BRIDGE = """
import asyncio
from evercontext.bridge import KanaAIBridge
print(asyncio.run(KanaAIBridge(api_key="x").process_intent({"content": "hi"}))["status"])
"""


def python(source: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assembled(**environment: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(python(ASSEMBLE, **environment))
    return told


@pytest.mark.contract("R20", "R24")
def test_the_settings_of_the_assembler_shape_a_context() -> None:
    """V14: those of R20 hold for an assembler that was given no configuration of its own."""
    plain = assembled()
    assert (plain["token_limit"], plain["limits"], plain["memories"]) == (80_000, [5, 11], 5)
    assert plain["system"].startswith("You are Kana")
    told = assembled(
        EC_WORKING_MEMORY_LIMIT="3",
        EC_SEMANTIC_MEMORY_LIMIT="2",
        EC_CONTEXT_MAX_TOKENS="2000",
        EC_TOKEN_SAFETY_MARGIN="0.5",
        EC_SYSTEM_PROMPT="あなたは翻訳者です。",
    )
    assert (told["token_limit"], told["limits"], told["memories"]) == (1_000, [2, 4], 2)
    assert told["system"].startswith("あなたは翻訳者です。")


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        ("EC_WORKING_MEMORY_LIMIT", "51", "between 1 and 50"),
        ("EC_SEMANTIC_MEMORY_LIMIT", "0", "between 1 and 20"),
        ("EC_CONTEXT_MAX_TOKENS", "999", "of 1000 or more"),
        ("EC_TOKEN_SAFETY_MARGIN", "0.99", "between 0.5 and 0.95"),
        ("EC_SYSTEM_PROMPT", " ", "not empty"),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, value: str, bound: str) -> None:
    ended = evercontext("config", "show", env={name: value})
    assert ended.code == 1, ended.err
    assert name in ended.err
    assert bound in ended.err


@pytest.mark.slow
def test_every_setting_is_read_where_something_is_done_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(RECORDER)
    reads = tmp_path / "reads"
    for name, value in {
        "PYTHONPATH": os.pathsep.join(
            [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "READS": str(reads),
        "EC_MODEL_RETRIES": "0",
        "OPENAI_API_KEY": "x",
        "ANTHROPIC_API_KEY": "x",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    project = tiny_repository(tmp_path / "project", {"a.md": "# A\n\nText.\n"})
    plan = {"version": 1, "tasks": [{"id": "a", "title": "write"}]}
    planner = script(tmp_path / "p.jsonl", {"role": "planner", "text": json.dumps(plan)})
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("search_code", query="text")]},
        write("b.md", "b\n"),
        {"text": "Done."},
    )
    evercontext("run", "-t", "x", "-m", model, "--planner", planner, cwd=project)
    for other in ("openai:gpt-4.1-mini", "claude-sonnet-5-5", "ollama:x", "gemini-cli:x"):
        evercontext("run", "-t", "x", "-m", other, cwd=project)
    (tmp_path / "hooked").mkdir()
    hooks = {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (tmp_path / "hooked" / "config.json").write_text(json.dumps(hooks))
    evercontext(
        "chat", "-m", model, cwd=project, stdin="hi\n", env={"EC_HOME": str(tmp_path / "hooked")}
    )
    evercontext("improve", "a.md", "--judge", "codex", cwd=project)
    evercontext("evaluate", "a.md", cwd=project)
    evercontext("mcp", cwd=project, stdin="", env={"EC_CATALOG_URL": "http://127.0.0.1:9"})
    evercontext("search", "text", cwd=project, env={"HOME": str(project)})
    _serve(project)
    python(ASSEMBLE)
    python(BRIDGE)
    # What shows where an unexpected error came from; this one is no error of ours.
    python("from evercontext.cli.failure import report\nreport(RuntimeError('x'), [])")
    lines = {tuple(line.split()) for line in reads.read_text().splitlines()}
    used = {
        name for name, *by in lines if by and (by[0] in IN_USE or not by[0].startswith(LOOKING_ON))
    }
    assert {row.name for row in rows()} - used == set()


def _serve(project: Path) -> None:
    """Open every server, ask the router for tools once, and end them."""
    free = {"EC_PORT": "0", "EC_ROUTER_PORT": "0", "MCP_PORT": "0", "EC_ROUTER_OPEN": "1"}
    with subprocess.Popen(
        [EVERCONTEXT, "serve"],
        cwd=project,
        env={**os.environ, **free},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if line.startswith("router"))
        address = line.split()[1].removesuffix("/mcp") + "/catalog/search"
        httpx2.post(address, json={"query": "x", "tools": []}, timeout=60)
        server.send_signal(signal.SIGTERM)
        server.stderr.read()
        assert server.wait(timeout=60) == 143
