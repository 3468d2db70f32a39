"""C4, P10, P11: the TypeScript SDK and the Inspector, which have no model, use our tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT, home
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import HTTP, ROUTER, STDIO
from tests.real.users import environment
from tests.server.router.test_http import add, routing, token
from tests.server.running import running

PROGRAMS = ("typescript-sdk", "typescript-client", "inspector")
NEW = {"path": "new.txt", "content": "新\n", "mode": "create"}
IMPORTS = {
    "typescript-sdk": """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
""",
    "typescript-client": """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
""",
}
SCRIPT = """
const { url, headers, command, args, tool, values } = JSON.parse(process.argv[2]);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  : new StdioClientTransport({ command, args, env: process.env });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: values });
console.log(JSON.stringify({ tools, result }));
await client.close();
"""


class Talker:
    """One of the programs, and where it finds us."""

    def __init__(self, installed: Installed, folder: Path, url: str = "", secret: str = "") -> None:
        self._installed, self._folder, self._url = installed, folder, url
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self.arguments = ["mcp"]

    def use(self, tool: str, **values: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Call one tool; return the listed definitions by name, and the result."""
        if self._installed.program.name == "inspector":
            listed, result = self._inspect("tools/list"), self._inspected(tool, values)
        else:
            answer = self._by_sdk(tool, values)
            listed, result = answer, answer["result"]
        return {each["name"]: each for each in listed["tools"]}, result

    def _by_sdk(self, tool: str, values: dict[str, Any]) -> dict[str, Any]:
        script = self._folder / "client.mjs"
        modules = self._folder / "node_modules"
        if not modules.is_symlink():
            modules.symlink_to(self._installed.folder / "node_modules")
        script.write_text(IMPORTS[self._installed.program.name] + SCRIPT, encoding="utf-8")
        about = {"url": self._url, "headers": self._headers, "tool": tool, "values": values}
        target = {"command": EVERCONTEXT, "args": self.arguments}
        return self._run("node", "--preserve-symlinks", script, json.dumps({**about, **target}))

    def _inspected(self, tool: str, values: dict[str, Any]) -> dict[str, Any]:
        pairs = [f"{key}={_word(value)}" for key, value in values.items()]
        each = [word for pair in pairs for word in ("--tool-arg", pair)]
        return self._inspect("tools/call", "--tool-name", tool, *each)

    def _inspect(self, method: str, *words: str) -> dict[str, Any]:
        headers = [w for k, v in self._headers.items() for w in ("--header", f"{k}: {v}")]
        address = [self._url, "--transport", "http", *headers]
        target = address if self._url else [EVERCONTEXT, *self.arguments]
        return self._run(self._installed.command, "--cli", *target, "--method", method, *words)

    def _run(self, *command: str | Path) -> dict[str, Any]:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self._folder / "project",
            env={**os.environ, **environment(self._installed)},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "birds.txt").write_text("秋に\n", encoding="utf-8")
    return folder


def check(talker: Talker, project: Path) -> None:
    """A file is read as plain text, once, and one is written; hints and titles are there."""
    tools, result = talker.use("read_file", path="birds.txt")
    assert "秋に" in result["content"][0]["text"]
    assert "structuredContent" not in result
    assert tools["read_file"]["annotations"]["readOnlyHint"] is True
    assert tools["read_file"]["title"]
    talker.use("write_file", **NEW)
    assert (project / "new.txt").read_text(encoding="utf-8") == "新\n"


@real(STDIO, *PROGRAMS)
def test_our_tools_over_stdio(installed: Installed, project: Path) -> None:
    check(Talker(installed, project.parent), project)


@real(HTTP, *PROGRAMS)
def test_our_tools_over_http(installed: Installed, project: Path) -> None:
    with running(project, home()) as gateway:
        check(Talker(installed, project.parent, f"{gateway.url}/mcp"), project)


@real(ROUTER, *PROGRAMS)
def test_tools_of_another_server_through_the_router(installed: Installed, project: Path) -> None:
    """Over stdio, and over HTTP with a token."""
    add("free")
    with routing(project) as url:
        near, far = (
            Talker(installed, project.parent),
            Talker(installed, project.parent, url, token("x")),
        )
        near.arguments = ["mcp", "--router"]
        for talker in (near, far):
            tools, result = talker.use("tool_discovery", query=["say the text"])
            assert sorted(tools) == ["tool_discovery", "tool_execute"]
            results = json.loads(result["content"][0]["text"])["results"]
            assert results[0]["toolKey"] == "free:echo"
            _, said = talker.use("tool_execute", toolKey="free:echo", arguments={"text": "やあ"})
            assert said["content"] == [{"type": "text", "text": "やあ"}]


@real(STDIO, "inspector")
def test_our_schemas_are_portable(installed: Installed, project: Path) -> None:
    """The Inspector ends with 6 where a schema is one that some client cannot take."""
    command = [installed.command, "--cli", EVERCONTEXT, "mcp", "--method", "tools/list", "--strict"]
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **environment(installed)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
