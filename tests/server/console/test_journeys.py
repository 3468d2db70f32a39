"""Whole pieces of work in a real browser: both languages, a desk and a phone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from evercontext.domain.translation import sections
from tests.server.console.slow_model import SlowModel
from tests.server.console.test_browser import CHROMIUM, FLAGS
from tests.server.console.visit import new_link
from tests.server.console.world import Served, World, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("chromium") and not CHROMIUM, reason="no chromium here"),
]
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 800}
ANSWER = """## What I did

| file | lines |
|---|---:|
| `notes.md` | 3 |

```python
def total(lines):
    return sum(lines)  # net
```

<img src=x onerror="window.pwned=1"> and [a link](javascript:window.pwned=2)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("journeys"))


@pytest.fixture(scope="module")
def model() -> Iterator[SlowModel]:
    with SlowModel().serving() as playing:
        yield playing


@pytest.fixture(scope="module")
def served(bare: World, model: SlowModel) -> Iterator[Served]:
    place = {"HOME": str(bare.folder), "OPENAI_API_KEY": "k" * 20, "OPENAI_BASE_URL": model.url}
    with serving(bare, **place, EC_MODEL_NAME="openai:slow", EC_AUTO_TEST="false") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


Words = Callable[[str], str]


@pytest.fixture(params=["en-desk", "ja-phone"])
def visited(
    request: pytest.FixtureRequest, browser: Browser, served: Served, bare: World
) -> Iterator[tuple[Page, Words]]:
    """A signed-in page, and the words of its language."""
    language, device = request.param.split("-")
    size: Any = DESK if device == "desk" else PHONE
    locale = "ja-JP" if language == "ja" else "en-GB"
    context = browser.new_context(viewport=size, locale=locale)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(new_link(bare))
    page.wait_for_selector("html[data-ready]")
    texts = sections("ja")["console"] if language == "ja" else {}
    yield page, lambda text: texts.get(text, text)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    context.close()
    assert problems == []


def address(served: Served, path: str) -> str:
    return f"http://{urlsplit(served.link).netloc}/console/{path}"


def test_a_task_is_given_followed_answered_and_undone(
    visited: tuple[Page, Words], model: SlowModel, bare: World, served: Served
) -> None:
    """W1, W2, W3."""
    page, t = visited
    arguments = {"path": "notes.md", "content": "# Notes\n\nHello\n", "mode": "overwrite"}
    model.answer("I will **write** ", "the file.\n", calls=(("write_file", arguments),))
    model.answer(ANSWER[:30], ANSWER[30:])
    page.get_by_label(t("What should be done?")).fill("Write notes.md")
    page.keyboard.press("Enter")
    page.locator(".saying strong", has_text="write").wait_for(timeout=60_000)
    page.get_by_role("timer").first.wait_for()
    model.go_on()
    card = page.locator("article.asks")
    card.locator(".diff .add", has_text="# Notes").wait_for(timeout=60_000)
    page.keyboard.press("y")
    page.locator(".call .dot.ok").wait_for(timeout=60_000)
    assert (bare.root / "notes.md").exists()
    page.locator(".saying .md-h").wait_for(timeout=60_000)
    model.go_on()
    page.locator(".ending").get_by_text(t("done")).wait_for(timeout=60_000)
    assert page.locator(".turn.agent td.right", has_text="3").count() == 1
    assert page.locator(".md-code .tok-k", has_text="def").count() == 1
    assert page.evaluate("window.pwned") is None
    assert page.locator(".story img, .story a[href^=javascript]").count() == 0
    page.locator(".call summary").click()
    page.locator(".call .diff .add", has_text="Hello").wait_for()
    page.get_by_role("tab", name=t("Time and context")).click()
    page.locator(".waterfall .model").first.wait_for()
    assert page.locator(".waterfall .tool").count() == 1
    page.get_by_role("button", name=t("Undo changes")).click()
    page.get_by_role("dialog").get_by_role("button", name=t("Undo"), exact=True).click()
    page.get_by_text(t("undone")).first.wait_for()
    assert not (bare.root / "notes.md").exists()


def test_a_conversation_is_begun_stopped_and_gone_on_with_in_two_tabs(
    visited: tuple[Page, Words], model: SlowModel, served: Served
) -> None:
    """W1."""
    page, t = visited
    model.answer("The answer ", "in two parts.")
    page.get_by_role("button", name=t("Conversation"), exact=True).click()
    page.get_by_label(t("What should be done?")).fill("Explain the shop")
    page.get_by_role("button", name=t("Start")).click()
    page.locator(".saying", has_text="The answer").wait_for(timeout=60_000)
    assert "/sessions/" in page.url
    other = page.context.new_page()
    other.goto(page.url)
    other.locator(".saying", has_text="The answer").wait_for(timeout=60_000)
    other.get_by_label(t("What should be done?")).fill("Me too")
    other.get_by_role("button", name=t("Send")).click()
    other.locator(".toast", has_text=re.compile("being answered")).wait_for()
    model.go_on()
    page.locator(".ending").get_by_text(t("done")).wait_for(timeout=60_000)
    other.locator(".ending").get_by_text(t("done")).wait_for(timeout=60_000)
    model.answer("Never ", "finished")
    other.get_by_role("button", name=t("Send")).click()
    # What one tab begins, the other shows.
    page.locator(".saying", has_text="Never").wait_for(timeout=60_000)
    other.get_by_role("button", name=t("Stop")).click()
    page.locator(".ending").get_by_text(t("cancelled")).wait_for(timeout=60_000)
    other.close()
