"""A feature through every layer of a project, and a project from nothing, by the command."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from evercontext.testing import tiny_repository
from tests.cli.command import evercontext, home
from tests.journeys.story import call, script

ORDER = "class Order:\n    def __init__(self, total: int) -> None:\n        self.total = total\n"
PLACE = (
    "from domain.order import Order\n\n\n"
    "def place_order(total: int, orders: list[Order]) -> Order:\n"
    "    order = Order(total)\n    orders.append(order)\n    return order\n"
)
VIEW = "export const view = (order) => `${order.total} yen`;\n"
FILES = {
    "domain/__init__.py": "",
    "domain/order.py": ORDER,
    "application/__init__.py": "",
    "application/place_order.py": PLACE,
    "web/order_view.js": VIEW,
    "README.md": "# 注文\nLayers: domain <- application <- web\n",
    "test_orders.py": (
        "import unittest\n\nfrom application.place_order import place_order\n\n\n"
        "class Orders(unittest.TestCase):\n    def test_total(self) -> None:\n"
        "        self.assertEqual(place_order(100, []).total, 100)\n"
    ),
}
NEW_ORDER = (
    "class Order:\n    def __init__(self, total: int, discount: int = 0) -> None:\n"
    "        if not 0 <= discount <= total:\n            raise ValueError('discount')\n"
    "        self.total = total - discount\n"
)
RULE = "\x1b[1m割引\x1b[0m is never more than the total\n"
UNITTEST = f"{sys.executable} -m unittest"


def turn(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [call(name, **arguments)]}


@pytest.mark.contract("N2", "N3", "N10", "N15", "N16", "N17", "N18", "N19", "N28", "N30")
def test_a_feature_through_every_layer(tmp_path: Path) -> None:
    project = tiny_repository(tmp_path / "shop", FILES)
    test = FILES["test_orders.py"] + (
        "\n    def test_discount(self) -> None:\n"
        "        self.assertEqual(place_order(100, [], 30).total, 70)\n"
    )
    model = script(
        tmp_path / "s.jsonl",
        turn("list", path=".", recursive=True),
        turn("searchInDirectory", directory=".", keyword="Order"),
        # A mistake: it edits what it has not read, and is told so.
        turn("editFile", path="domain/order.py", new_content="class Order: ...\n"),
        {"when": "was not read yet", **turn("readFile", path="domain/order.py")},
        turn("editFile", path="domain/order.py", new_content=NEW_ORDER),
        turn("readFile", path="application/place_order.py"),
        turn(
            "replaceInFile",
            path="application/place_order.py",
            edits=[{"old": "orders: list[Order])", "new": "orders: list[Order], less: int = 0)"}],
        ),
        turn("readFile", path="test_orders.py"),
        turn("editFile", path="test_orders.py", new_content=test),
        turn("run.test", command=UNITTEST),
        # Red: the discount never reaches the order. It reads the log and repairs it.
        {
            "when": "100 != 70",
            **turn(
                "replaceInFile",
                path="application/place_order.py",
                edits=[{"old": "Order(total)", "new": "Order(total, less)"}],
            ),
        },
        turn("readFile", path="web/order_view.js"),
        turn("editFile", path="web/order_view.js", new_content=VIEW.replace("yen", "円")),
        turn("writeFile", path="docs/rules.md", content=RULE),
        {"text": "割引を全ての層に加えました。"},
    )
    asked = "注文に割引を付けられるようにして。詳細は任せる\n"
    done = evercontext(
        "chat", "--yes", "-m", model, "--test-cmd", UNITTEST, cwd=project, stdin=asked
    )
    assert done.code == 0, done.out + done.err
    assert "割引を全ての層に加えました。" in done.out
    assert "5 files changed, verified" in done.out
    # Control characters are written as they are, and shown as what they are.
    assert (project / "docs/rules.md").read_text() == RULE
    assert "\x1b" not in done.out
    assert (project / "domain/order.py").read_text() == NEW_ORDER
    assert "Order(total, less)" in (project / "application/place_order.py").read_text()
    _check_results()


def _check_results() -> None:
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        kept = database.execute("SELECT role, tool_results FROM messages ORDER BY id").fetchall()
    results = [json.loads(told)[0] for role, told in kept if role == "tool"]
    shapes = [json.loads(result["result"]) for result in results]
    assert all({"ok", "result", "error"} <= set(shape) for shape in shapes)
    failed = [r["name"] for r, shape in zip(results, shapes, strict=True) if not shape["ok"]]
    assert failed == ["editFile"]


@pytest.mark.contract("N4", "N11")
def test_a_small_project_from_nothing(tmp_path: Path) -> None:
    project = tmp_path / "new"
    project.mkdir()
    tool = "import sys\n\n\ndef shout(text: str) -> str:\n    return text.upper()\n\n\n"
    tool += "if __name__ == '__main__':\n    print(shout(' '.join(sys.argv[1:])))\n"
    test = "import unittest\n\nfrom shout import shout\n\n\nclass Shouts(unittest.TestCase):\n"
    test += "    def test_it(self) -> None:\n        self.assertEqual(shout('a'), 'A')\n"
    model = script(
        tmp_path / "s.jsonl",
        {"text": "What should it do with several words?"},
        {"when": "join them", **turn("writeFile", path="shout.py", content=tool)},
        turn("writeFile", path="test_shout.py", content=test),
        {"text": "Built: `python shout.py hello`."},
    )
    said = "build me a command that shouts\njoin them with a space\n"
    done = evercontext(
        "chat", "--yes", "-m", model, "--test-cmd", UNITTEST, cwd=project, stdin=said
    )
    assert done.code == 0, done.out
    assert "2 files changed, verified" in done.out
    ran = subprocess.run(
        [sys.executable, "shout.py", "a", "b"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "A B\n"


API = """import json
import sys
from wsgiref.simple_server import make_server

NOTES = ["first"]


def app(environ, start_response):
    found = environ["PATH_INFO"] == "/notes"
    start_response("200 OK" if found else "404 Not Found", [("Content-Type", "application/json")])
    return [json.dumps({"notes": NOTES} if found else {"error": "not found"}).encode()]


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, app) as server:
        print(server.server_port, flush=True)
        server.handle_request()
"""
API_TEST = """import json
import unittest
from wsgiref.util import setup_testing_defaults

from api import app


class Api(unittest.TestCase):
    def ask(self, path):
        environ, seen = {"PATH_INFO": path}, []
        setup_testing_defaults(environ)
        body = b"".join(app(environ, lambda status, headers: seen.append(status)))
        return seen[0], json.loads(body)

    def test_notes(self):
        self.assertEqual(self.ask("/notes"), ("200 OK", {"notes": ["first"]}))

    def test_nothing_else(self):
        self.assertEqual(self.ask("/x")[0], "404 Not Found")
"""


@pytest.mark.contract("N4", "N11")
def test_a_small_web_api_from_nothing(tmp_path: Path) -> None:
    project = tmp_path / "api"
    project.mkdir()
    wrong = API.replace('"/notes"', '"/note"')
    model = script(
        tmp_path / "s.jsonl",
        {"text": "どの経路で何を返しますか?"},
        {"when": "/notes", **turn("writeFile", path="api.py", content=wrong)},
        turn("writeFile", path="test_api.py", content=API_TEST),
        turn("run.test", command=UNITTEST),
        {"when": "404 Not Found", **turn("readFile", path="api.py")},
        turn("editFile", path="api.py", new_content=API),
        {"text": "GET /notes を返す API を作りました。"},
    )
    said = "小さな web API を作って\nGET /notes でメモの一覧を JSON で\n"
    done = evercontext(
        "chat", "--yes", "-m", model, "--test-cmd", UNITTEST, cwd=project, stdin=said
    )
    assert done.code == 0, done.out
    assert "2 files changed, verified" in done.out
    served = subprocess.Popen(
        [sys.executable, "api.py"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with served:
        assert served.stdout is not None
        port = int(served.stdout.readline())
        with urlopen(f"http://127.0.0.1:{port}/notes", timeout=30) as answer:
            assert json.load(answer) == {"notes": ["first"]}
