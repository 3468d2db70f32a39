"""P10, C3, C4: MCP servers of others answer through our router as they answer alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evercontext.testing import tiny_repository
from tests.cli.command import evercontext
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import ROUTER
from tests.real.users import environment
from tests.server.router.test_http import Client, routing, token

PAGE = "<html><head><title>Kraniche</title></head><body><h1>秋に</h1></body></html>"


@dataclass(frozen=True, slots=True)
class Use:
    """How a server is started for a project, which tool is called, and what that answers."""

    tool: str
    answer: str
    words: Callable[[Path], list[str]] = lambda project: []
    values: Callable[[Path, str], dict[str, Any]] = lambda project, url: {}
    env: Callable[[Path], dict[str, str]] = field(default=lambda project: {})


def _browser(project: Path) -> list[str]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium is installed")
    return ["--headless", "--isolated", "--no-sandbox", "--executable-path", program]


USES = {
    "everything": Use("get-sum", "42", lambda _: ["stdio"], lambda *_: {"a": 19, "b": 23}),
    "filesystem": Use(
        "read_text_file",
        "鶴",
        lambda project: [str(project)],
        lambda project, _: {"path": str(project / "birds.txt")},
    ),
    "memory": Use(
        "create_entities",
        "鶴",
        values=lambda *_: {
            "entities": [{"name": "鶴", "entityType": "bird", "observations": ["white"]}]
        },
        env=lambda project: {"MEMORY_FILE_PATH": str(project / "graph.jsonl")},
    ),
    "sequential-thinking": Use(
        "sequentialthinking",
        '"thoughtNumber": 1',
        values=lambda *_: {
            "thought": "一",
            "nextThoughtNeeded": False,
            "thoughtNumber": 1,
            "totalThoughts": 1,
        },
    ),
    "git": Use(
        "git_status",
        "birds.txt",
        lambda project: ["--repository", str(project)],
        lambda project, _: {"repo_path": str(project)},
    ),
    "time": Use(
        "convert_time",
        "+9.0h",
        lambda _: ["--local-timezone", "UTC"],
        lambda *_: {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    "fetch": Use(
        "fetch",
        "秋に",
        lambda _: ["--ignore-robots-txt", "--allow-private-ips"],
        lambda _, url: {"url": url},
    ),
    "playwright": Use("browser_navigate", "Kraniche", _browser, lambda _, url: {"url": url}),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one file that is not committed."""
    folder = tmp_path / "project"
    tiny_repository(folder, {"a.txt": "x\n"})
    (folder / "birds.txt").write_text("鶴\n", encoding="utf-8")
    return folder


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def ask(
    command: list[str], env: dict[str, str], folder: Path, tool: str, values: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Start a server, and return its tools and the answer of one of them."""
    from mcp.client.stdio import stdio_client

    from mcp import ClientSession, StdioServerParameters

    about = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=folder)
    async with AsyncExitStack() as stack, asyncio.timeout(200):
        streams = await stack.enter_async_context(stdio_client(about))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        listed = await session.list_tools()
        answer = await session.call_tool(tool, values)
    return (
        [each.model_dump(mode="json", exclude_unset=True, by_alias=True) for each in listed.tools],
        answer.model_dump(mode="json", exclude_unset=True, by_alias=True),
    )


@real(ROUTER, *USES)
async def test_a_server_answers_through_the_router_as_alone(
    installed: Installed, project: Path, page: str
) -> None:
    """Definition and answer are the server's own, where tools are listed directly."""
    name = installed.program.name
    use = USES[name]
    words, values, more = use.words(project), use.values(project, page), use.env(project)
    env = {**environment(installed), **more}
    alone = await ask([installed.command, *words], env, project, use.tool, values)
    (project / "graph.jsonl").unlink(missing_ok=True)
    given = [word for key, value in more.items() for word in ("--env", f"{key}={value}")]
    listed, answer = await asyncio.to_thread(
        routed, name, [*given, "--", installed.command, *words], project, use.tool, values
    )
    assert use.answer in json.dumps(answer, ensure_ascii=False)
    ours = {each["name"]: each for each in listed}
    # Some offer more to us, because we say that a client can be asked.
    for each in alone[0]:
        assert ours[each["name"]] == each
    assert settled(answer) == settled(alone[1])


def routed(
    name: str, start: list[str], project: Path, tool: str, values: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Put a server behind our router; return its tools by their own names, and an answer."""
    for command in (
        ["servers", "add", name, *start],
        ["projects", "create", "all", "--optimization", "null"],
        ["servers", "disable", "evercontext"],
    ):
        done = evercontext(*command, cwd=project)
        assert done.code == 0, done.err
    with routing(project, PATH=os.environ["PATH"]) as url:
        client = Client(url, token("x"), "all")
        for _ in range(5):
            called = client.ask("tools/call", name=f"{name}__{tool}", arguments=values)[1]
            # On a busy machine the first start of a program takes longer than a server has.
            if "no answer within" not in json.dumps(called):
                break
        assert "result" in called, called
        answer = dict(called["result"])
        listed = client.ask("tools/list")[1]["result"]["tools"]
    prefix = f"{name}__"
    return [{**each, "name": each["name"].removeprefix(prefix)} for each in listed], answer


def settled(answer: dict[str, Any]) -> Any:
    """An answer without what differs from one start of a program to the next: times in names."""
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d-]+Z", "TIME", json.dumps(answer)))
