"""The console as a person sees it: a real browser, a real server, real data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.server.console.visit import new_link
from tests.server.console.world import LINK, Served, World, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
]
PAGES = (
    "work",
    "runs",
    "approvals",
    "sessions",
    "search?q=password",
    "memory?q=deploy",
    "tools",
    "tools?tab=projects",
    "tools?tab=own",
    "tools?tab=calls",
    "evaluations",
    "kpis",
    "settings",
)
DARKEST = ("runs", "search?q=password", "memory?q=deploy", "tools", "kpis")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no chromium here: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def cookies(browser: Browser, served: Served) -> Any:
    """What a browser has after it came in through the link that serve printed."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.link)
    page.wait_for_selector("html[data-ready]")
    assert "ticket" not in page.url
    state = context.storage_state()
    context.close()
    return state


def console_of(served: Served) -> str:
    """Where this console is: at a name of its own."""
    parts = urlsplit(served.link)
    return f"http://{parts.netloc}"


class Desk:
    """One page, and everything that went wrong on it."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        self.context, self.served = context, served
        self.problems: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("dialog", lambda box: self.problems.append(f"dialog {box.message}"))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def go(self, path: str) -> Page:
        """Open a page and wait until it is drawn."""
        self.page.goto(f"{console_of(self.served)}/console/{path}")
        self.page.wait_for_selector("html[data-ready]")
        self.page.wait_for_load_state("load")
        return self.page


@pytest.fixture
def desk(browser: Browser, served: Served, cookies: Any) -> Iterator[Desk]:
    context = browser.new_context(storage_state=cookies, viewport={"width": 1280, "height": 800})
    made = Desk(context, served)
    yield made
    context.close()
    assert made.problems == []


def start(
    world: World, *more: str, turns: list[dict[str, Any]], task: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evercontext", "run", "-t", task, "--no-auto-test", *more]
    place = {"EC_HOME": str(world.home), "EC_APP_ROOT": str(world.root)}
    return subprocess.Popen(
        [*command, "-m", world.script(*turns)],
        env={**os.environ, **place},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.case(58, 95)
def test_hostile_names_are_text_on_every_page(desk: Desk) -> None:
    page = desk.go("runs")
    page.get_by_role("option", name=re.compile("onerror")).click()
    page.get_by_role("tab", name="Changes").click()
    page.get_by_role("heading", name="docs/<b>bold</b>.md").wait_for()
    assert "\\x1b]52;c;" in page.locator(".diff").inner_text()
    for path in PAGES:
        page = desk.go(path)
        page.wait_for_timeout(50)
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("img[src='x'], script:not([src]), b:text-is('bold')").count() == 0
        assert page.locator("a[href^='javascript']").count() == 0
        assert "\x1b" not in page.content()
    page = desk.go("memory?q=a page said")
    page.get_by_text("\\u202egpj.exe\\u200b").first.wait_for()
    page = desk.go("runs")
    assert LINK in page.get_by_role("option", name=re.compile("onerror")).inner_text()


def test_a_live_run_appears_is_read_and_is_undone(desk: Desk, world: World) -> None:
    page = desk.go("runs")
    turns = [write("live.py", "print('live')\n"), {"text": "It is written."}]
    with start(world, turns=turns, task="Write live.py while I watch") as run:
        row = page.get_by_role("option", name=re.compile("while I watch"))
        row.wait_for(timeout=120_000)
        row.get_by_text("done").wait_for(timeout=120_000)
        run.communicate(timeout=120)
    row.click()
    page.get_by_role("tab", name="Timeline").click()
    timeline = page.get_by_role("listbox", name="Timeline")
    timeline.get_by_role("option", name=re.compile("Final")).wait_for()
    timeline.get_by_role("option", name=re.compile("write_file.*live")).click()
    page.locator(".detail").get_by_text("print('live')").first.wait_for()
    page.get_by_role("tab", name="Changes").click()
    page.locator(".diff .add", has_text="print('live')").wait_for()
    assert (world.root / "live.py").exists()
    page.get_by_role("button", name="Undo changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("undone").wait_for()
    assert not (world.root / "live.py").exists()


def test_a_run_is_followed_while_it_waits_and_goes_on(desk: Desk, world: World) -> None:
    page = desk.go("approvals")
    page.get_by_text("Nothing waits for you").wait_for()
    turns = [write("approved.py", "x = 1\n"), {"text": "written"}]
    with start(world, "--ask", turns=turns, task="Ask before writing") as run:
        card = page.get_by_role("article", name="write_file needs your approval")
        card.wait_for(timeout=120_000)
        card.locator(".diff .add", has_text="x = 1").wait_for()
        assert page.locator("#waiting").inner_text().startswith("1")
        assert page.title().startswith("(1)")
        assert card.get_by_role("button", name="Yes to every write_file in this run").is_visible()
        card.get_by_role("link", name="See the run").click()
        page.get_by_role("tab", name="Course").wait_for()
        card.locator(".diff .add", has_text="x = 1").wait_for()
        card.get_by_role("button", name="Yes, once").click()
        page.get_by_text("Allowed: write_file").wait_for()
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (0, "written\n"), err
    assert (world.root / "approved.py").read_text() == "x = 1\n"
    page = desk.go("approvals")
    page.get_by_text("Nothing waits for you").wait_for()
    page.locator("#waiting").wait_for(state="hidden")


def _tools(served: Served, secret: str) -> list[str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {secret}",
        "x-evercontext-project": "shop",
    }
    request = urllib.request.Request(served.router, json.dumps(call).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [tool["name"] for tool in json.loads(answer.read())["result"]["tools"]]


@pytest.mark.contract("T23", "T33")
def test_the_gear_switches_context_optimization(desk: Desk, served: Served, world: World) -> None:
    from tests.cli.command import evercontext

    place = {"EC_HOME": str(world.home)}
    made = evercontext("tokens", "create", "browser", env=place, cwd=world.folder)
    secret = made.out.strip().split()[-1]
    assert len(_tools(served, secret)) == 2
    page = desk.go("tools?tab=projects")
    page.get_by_role("button", name="Settings of shop").click()
    switch = page.get_by_role("switch", name="Context Optimization")
    assert switch.is_checked()
    switch.click()
    page.get_by_text("Clients see every tool in the list.").wait_for()
    assert len(_tools(served, secret)) > 5
    switch.click()
    page.get_by_text("Clients see two tools").wait_for()
    assert len(_tools(served, secret)) == 2
    page.get_by_label("Strategy").select_option("bm25")
    page.get_by_role("button", name="Done").click()
    page.get_by_text("Context Optimization: bm25").wait_for()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        _tools(served, "wrong")
    page.get_by_role("tab", name="Calls").click()
    page.get_by_role("switch", name="Only refusals").click()
    page.get_by_role("row").filter(has_text="POST /mcp").filter(has_text="401").first.wait_for()


def test_sessions_are_searched_in_japanese_and_read(desk: Desk) -> None:
    page = desk.go("runs")
    page.get_by_role("option", name=re.compile("What is this project")).click()
    page.get_by_role("link", name="Session", exact=True).click()
    page.get_by_role("heading", name="What is this project?").wait_for()
    page.get_by_label("Search every message").fill("郵便番号")
    hit = page.locator(".pick mark", has_text="郵便番号").first
    hit.wait_for()
    hit.click()
    page.get_by_text("配送先の郵便番号は七桁の数字です。").last.wait_for()
    page.get_by_text("It is a small shop").last.wait_for()
    page.get_by_text("Take it up in the terminal").click()
    page.get_by_role("button", name=re.compile("Copy evercontext chat -r")).wait_for()


def test_code_is_found_as_it_is_typed(desk: Desk) -> None:
    page = desk.go("search")
    page.get_by_label("What does the code do, or what is it called?").fill("hash a password")
    page.get_by_role("heading", name="shop/accounts.py:").first.wait_for()
    page.locator(".code mark", has_text="password").first.wait_for()
    assert page.locator(".code .tok-k", has_text="def").count() > 0
    assert page.locator("article .chip").count() > 1
    assert "q=hash" in page.url


def test_memories_tell_why_and_are_edited_and_forgotten(desk: Desk) -> None:
    page = desk.go("memory")
    page.get_by_label("What would be recalled for this question?").fill("price as float?")
    first = page.locator("article").first
    first.get_by_text("Recalled because").wait_for()
    first.get_by_role("button", name="Edit").click()
    page.get_by_label("Words").fill("Prices are integers of cents.")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Prices are integers of cents.").wait_for()
    card = page.locator("article", has_text="integers of cents")
    card.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget for good").click()
    card.wait_for(state="detached")


def test_charts_are_drawn_and_said(desk: Desk) -> None:
    page = desk.go("evaluations")
    page.get_by_role("img", name="Score over time").wait_for()
    assert page.locator("table.sr tr").count() == 3
    page.get_by_label("Left version").select_option("0")
    page.get_by_role("row", name=re.compile("completeness")).wait_for()
    page = desk.go("kpis")
    page.get_by_role("img", name="Runs by day").wait_for()
    assert page.locator("svg.heat rect:not(.heat-0)").count() > 0
    page.get_by_role("button", name="7 days").click()
    page.get_by_text("Task success").wait_for()
    assert "–" not in page.locator(".tile .big").all_inner_texts()
    page.get_by_role("region", name="Tokens and cost by model").wait_for()


@pytest.mark.parametrize("width", [360, 1280])
def test_letters_of_charts_are_large_enough_to_read(
    browser: Browser, served: Served, cookies: Any, width: int
) -> None:
    size: Any = {"width": width, "height": 740}
    context = browser.new_context(storage_state=cookies, viewport=size)
    desk = Desk(context, served)
    for path in ("evaluations",):
        page = desk.go(path)
        page.locator("svg.chart text").first.wait_for()
        heights = page.eval_on_selector_all(
            "svg.chart text", "all => all.map((one) => one.getBoundingClientRect().height)"
        )
        assert min(heights) >= 10, path
    context.close()
    assert desk.problems == []


def test_code_is_coloured_by_its_language(desk: Desk) -> None:
    page = desk.go("search?q=割引")
    code = page.locator("article", has_text="割引.py").locator(".code")
    code.get_by_text("// 10").wait_for()
    assert "10" in code.locator(".tok-n").all_inner_texts()
    assert code.locator(".tok-c").count() == 0
    page = desk.go("search?q=pytest")
    prose = page.locator("article", has_text="README.md").locator(".code")
    prose.get_by_text("Run the tests with").wait_for()
    assert prose.locator("[class^=tok-]").count() == 0


def test_everything_is_reached_by_keys(desk: Desk) -> None:
    page = desk.go("settings")
    page.keyboard.press("/")
    page.keyboard.type("max_turns")
    page.get_by_role("row", name=re.compile("max_bytes")).wait_for(state="detached")
    assert page.locator("tbody tr").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("r")
    rows = page.get_by_role("listbox", name="Runs")
    rows.get_by_role("option").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert rows.get_by_role("option", selected=True).get_attribute("aria-posinset") == "1"
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Course").wait_for()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"


def test_the_page_speaks_japanese_by_preference_and_by_switch(
    browser: Browser, served: Served, cookies: Any
) -> None:
    context = browser.new_context(storage_state=cookies, locale="ja-JP")
    desk = Desk(context, served)
    page = desk.go("runs")
    page.get_by_role("heading", name="実行").first.wait_for()
    assert page.evaluate("document.documentElement.lang") == "ja"
    page.get_by_role("button", name="English").click()
    page.get_by_role("heading", name="Runs").wait_for()
    page.reload()
    page.get_by_role("heading", name="Runs").wait_for()
    page.get_by_role("button", name="日本語").click()
    for path in PAGES:
        desk.go(path)
    page = desk.go("settings")
    page.get_by_text("1 タスクでのモデル呼び出し回数").wait_for()
    page.get_by_text("環境変数 EC_APP_ROOT").wait_for()
    page.get_by_text("（未設定）").first.wait_for()
    page.get_by_role("searchbox").fill("呼び出し回数")
    page.get_by_role("row", name=re.compile("max_bytes")).wait_for(state="detached")
    assert page.locator("tbody tr").count() == 1
    context.close()
    assert desk.problems == []


def test_it_is_readable_on_a_phone_and_in_the_dark(
    browser: Browser, served: Served, cookies: Any
) -> None:
    size: Any = {"width": 360, "height": 740}
    context = browser.new_context(storage_state=cookies, viewport=size, color_scheme="dark")
    desk = Desk(context, served)
    for path in PAGES:
        page = desk.go(path)
        page.wait_for_timeout(50)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"{path} is {wide} wide"
    page = desk.go("tools?tab=calls")
    page.wait_for_selector("[role=tab][aria-selected=true]")
    chosen = "document.querySelector('[role=tab][aria-selected=true]').getBoundingClientRect()"
    while page.evaluate(f"{chosen}.right") > 360:
        page.wait_for_timeout(50)
    page = desk.go("tools?tab=own")
    names = page.locator("td.mono:first-child")
    names.first.wait_for()
    heights = names.evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    assert max(heights) < 30, "the name of a tool is broken in two"
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(ground) != dark
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("listbox", name="Runs").wait_for()
    context.close()
    assert desk.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    scheme: Any, browser: Browser, served: Served, cookies: Any, world: World
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    # Only the tool that looks for faults is let past the rules; the pages obey them elsewhere.
    context = browser.new_context(storage_state=cookies, color_scheme=scheme, bypass_csp=True)
    desk = Desk(context, served)
    run = desk.go("runs").get_by_role("option").last.evaluate("row => row.id")
    desk.page.locator(f"#{run}").click()
    desk.page.get_by_role("tab", name="Course").wait_for()
    trace = desk.page.url.split("/console/")[1]
    # What the dark can spoil is contrast, and a few pages hold every colour there is.
    for path in (*(PAGES if scheme == "light" else DARKEST), trace, f"{trace}?tab=timeline"):
        page = desk.go(path)
        page.wait_for_timeout(100)
        found = Axe().run(page).response["violations"]
        bad = [
            f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary']}"
            for one in found
        ]
        assert bad == [], path
    context.close()


def test_without_a_link_it_is_locked(browser: Browser, served: Served, world: World) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{console_of(served)}/console/runs")
    page.get_by_role("heading", name="This console is locked").wait_for()
    page.goto(new_link(world))
    page.get_by_role("heading", name="New work").wait_for()
    context.close()


def test_another_local_server_gets_nothing_to_replay(
    browser: Browser, served: Served, world: World
) -> None:
    """X7: a cookie goes to every port of a host; the console's host is its own alone."""
    received: list[str] = []

    class Thief(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>hello</p>")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    thief = ThreadingHTTPServer(("127.0.0.1", 0), Thief)
    threading.Thread(target=thief.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(new_link(world))
        page.wait_for_selector("html[data-ready]")
        (cookie,) = context.cookies()
        for host in ("127.0.0.1", "localhost", "ec-0000000000000000.localhost"):
            page.goto(f"http://{host}:{thief.server_port}/console/")
            page.get_by_text("hello").wait_for()
        assert len(received) >= 3
        assert not any(cookie["value"] in text for text in received)
        replayed = {"cookie": received[0] or "none=none"}
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask = urllib.request.Request(f"{served.url}/console/api/me", headers=replayed)
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(ask)
        page.goto(f"{console_of(served)}/console/runs")
        page.wait_for_selector("html[data-ready]")
    finally:
        context.close()
        thief.shutdown()
        thief.server_close()
