"""A home full of real work: runs, sessions, memories, servers, judgements; and a real server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evercontext import settings as sources
from evercontext.access.access_tokens import Tokens
from evercontext.access.router_projects import Projects, RouterProject
from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.domain.memory import MemoryType, SourceType
from evercontext.domain.message import user
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door
from evercontext.settings import Settings
from evercontext.tools.approval_gate import Gate
from tests.catalog.world import odd

HOSTILE = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script> \x1b]52;c;cHduZWQ=\x07'
)
BACKWARDS = "\u202egpj.exe\u200b"
"""A name that reads the other way round where direction characters count."""
LINK = "javascript:window.pwned=3"
CODE = {
    "shop/accounts.py": '''"""Who may sign in."""

import hashlib
import hmac


def hash_password(password: str, salt: bytes) -> bytes:
    """Return a slow hash of a password."""
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


def sign_in(user: "User", password: str) -> bool:
    """True if the password is the user's own."""
    given = hash_password(password, user.salt)
    return hmac.compare_digest(given, user.digest)
''',
    "shop/orders.py": '''"""Orders and what they cost."""

from decimal import Decimal


def total(lines: list["Line"], tax: Decimal) -> Decimal:
    """Add up the lines of an order, tax included."""
    net = sum((line.price * line.count for line in lines), Decimal(0))
    return (net * (1 + tax)).quantize(Decimal("0.01"))
''',
    "shop/配送.py": '''"""配送先の住所を確かめる。"""


def 郵便番号を検証(番号: str) -> bool:
    """郵便番号が七桁の数字かどうか。"""
    return len(番号) == 7 and 番号.isdigit()
''',
    "README.md": "# Shop\n\nA small shop. Run the tests with `pytest`.\n",
}

DISCOUNT = "def 割引(価格: int) -> int:\n    return 価格 * 9 // 10\n"
INSTALL, USE = "\n## Install\n\nRun `pip install shop`.\n", "\n## Use\n\nSee docs.\n"


def write(path: str, content: str) -> dict[str, Any]:
    arguments = {"path": path, "content": content, "mode": "overwrite"}
    return {"tool_calls": [{"name": "write_file", "arguments": arguments}]}


def usage(turn: dict[str, Any], given: int, made: int) -> dict[str, Any]:
    return {**turn, "usage": {"input_tokens": given, "output_tokens": made}}


class World:
    """Makes real data in a home, in this process."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "shop", folder / "home"
        self.folder = folder
        for name, text in CODE.items():
            place = self.root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        self._scripts = 0

    @property
    def settings(self) -> Settings:
        environment = {"EC_HOME": str(self.home), "PATH": os.environ["PATH"]}
        return sources.load(
            {"root": str(self.root), "auto_test": False},
            environment=environment,
            cwd=self.folder,
        )

    def script(self, *turns: dict[str, Any]) -> str:
        self._scripts += 1
        path = self.folder / f"script-{self._scripts}.jsonl"
        path.write_text("".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in turns))
        return f"scripted:{path}"

    async def fill(self) -> None:
        async with EverContext.open(self.settings) as app:
            await self._runs(app)
            await self._session(app)
            await self._memories(app)
            await self._servers(app)
            await self._judge(app)
        await self._planned()

    async def _runs(self, app: EverContext) -> None:
        search = {"tool_calls": [{"name": "search_code", "arguments": {"query": "sign in"}}]}
        read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "shop/accounts.py"}}]}
        longer = CODE["shop/accounts.py"].replace("n=2**14", "n=2**15")
        model = self.script(
            usage(search, 2100, 60),
            usage(read, 3300, 40),
            usage(write("shop/accounts.py", longer), 3900, 410),
            usage({"text": "Password hashes cost twice as much now."}, 4400, 30),
        )
        await app.run_task("Make password hashing slower against guessing", model_name=model)
        model = self.script(
            usage(write("shop/割引.py", DISCOUNT), 900, 80),
            {"text": "割引の計算を追加しました。"},
        )
        await app.run_task("商品の一割引を計算する関数を追加して", model_name=model)
        refused = {"tool_calls": [{"name": "read_file", "arguments": {"path": "../secret.txt"}}]}
        model = self.script(refused, {"text": "I could not read that."})
        await app.run_task("Read the secret next door", model_name=model)
        model = self.script(write("docs/<b>bold</b>.md", f"# {HOSTILE}\n"), {"text": HOSTILE})
        await app.run_task(f"Write {HOSTILE} {LINK}", model_name=model)

    async def _planned(self) -> None:
        tasks = [
            {"id": "tax", "title": "Take the tax rate from one place"},
            {"id": "docs", "title": "Say in the README when we deploy", "depends_on": ["tax"]},
        ]
        planner = self.script({"text": json.dumps({"version": 1, "tasks": tasks})})
        settings = replace(self.settings, planner=planner)
        rate = CODE["shop/orders.py"].replace("tax: Decimal", "tax: Decimal = TAX")
        readme = CODE["README.md"] + "\nWe deploy on Tuesdays.\n"
        model = self.script(
            usage(write("shop/orders.py", rate), 1200, 200),
            usage({"text": "The rate has a default now."}, 1500, 20),
            usage(write("README.md", readme), 1300, 60),
            usage({"text": "The README says when we deploy."}, 1600, 20),
        )
        async with EverContext.open(settings) as app:
            await app.run_task("Default tax rate, and say which day we deploy", model_name=model)

    async def _session(self, app: EverContext) -> None:
        model = self.script(
            {"tool_calls": [{"name": "read_file", "arguments": {"path": "README.md"}}]},
            {"text": "It is a small shop; `pytest` runs its tests."},
            {"text": "配送先の郵便番号は七桁の数字です。"},
        )
        talk = await open_conversation(app, model_name=model)
        await talk.turn("What is this project?", Gate())
        await talk.turn("郵便番号の形式は?", Gate())
        await talk.end()
        other = await app.memory.sessions.create(self.root, "m", user_id="somebody else")
        await app.memory.messages.append(other.id, user("郵便番号 that nobody else may read"))
        await app.memory.sessions.end(other.id)

    async def _memories(self, app: EverContext) -> None:
        keep, project = app.memory.memories, app.memory.project
        for text, source in (
            ("We deploy on Tuesdays, never on Fridays.", SourceType.DECISION),
            ("Prices are kept as Decimal, never as float.", SourceType.CORRECTION),
            ("本番のデータベースには直接つながない。", SourceType.DECISION),
            (f"A page said: {HOSTILE} {BACKWARDS}", SourceType.TOOL),
        ):
            await keep.save_memory(text, MemoryType.LONGTERM, source, project=project)

    async def _servers(self, app: EverContext) -> None:
        projects = Projects(app.store)
        await projects.put(RouterProject("shop", str(self.root)))
        await projects.put(RouterProject("lab", "", None))
        table = app.catalog.servers.table
        await table.put(odd("weather", project="shop"))
        await table.put(replace(odd("broken"), argv=("/no/such/program", "--serve")))
        await Tokens(app.store).create("editor")
        caller = Caller("f" * 8, Door.MCP, principal=Principal(project=app.memory.project))
        toolbox = app.toolbox.along_with(app.catalog.tools())
        await toolbox.call("tool_discovery", {"query": "anything"}, caller)
        await table.pin("weather", {"<script>alert(1)</script>": "0"})

    async def _judge(self, app: EverContext) -> None:
        caller = Caller("e" * 8, Door.MCP, principal=Principal(project=app.memory.project))
        for more in ("", INSTALL, INSTALL + USE * 3):
            content = CODE["README.md"] + more
            await app.toolbox.call("evaluate_document", {"content": content}, caller)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    url: str
    link: str
    """A link into the console that nobody has used."""
    router: str
    process: subprocess.Popen[str]


@contextmanager
def serving(world: World, *more: str, **environment: str) -> Iterator[Served]:
    """Run ``evercontext serve --open`` on free ports until the block ends."""
    settings = {
        **os.environ,
        "EC_HOME": str(world.home),
        "EC_APP_ROOT": str(world.root),
        "EC_PORT": "0",
        "EC_ROUTER_PORT": "0",
        "USE_MOCK_EVALUATOR": "true",
        **environment,
    }
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        settings.pop(name, None)
    command = [sys.executable, "-m", "evercontext", "serve", "--only=gateway", "--only=router"]
    command += [] if "--host" in more else ["--open"]
    with subprocess.Popen(
        [*command, *more], env=settings, stderr=subprocess.PIPE, text=True, cwd=world.folder
    ) as process:
        try:
            assert process.stderr
            told = ""
            for line in process.stderr:
                told += line
                if line.startswith("Ctrl-C"):
                    break
            found = [re.search(rf"{word} +(http\S+)", told) for word in ("REST", "open", "router")]
            rest, link, router = (one[1] if one else "" for one in found)
            assert rest, told
            yield Served(rest, link, router, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)
