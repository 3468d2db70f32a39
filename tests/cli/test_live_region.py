"""The part of the screen that is drawn again, as a terminal shows it (A1)."""

from __future__ import annotations

import io

import pyte
import pytest

from evercontext.cli.live_region import LiveRegion, live_height
from evercontext.cli.terminal import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "40")
    return Terminal()


def shown(terminal: Terminal) -> list[str]:
    screen = pyte.Screen(40, 24)
    pyte.Stream(screen).feed(terminal.getvalue().replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


def test_what_was_drawn_gives_way_to_what_is_written(terminal: Terminal) -> None:
    """A1: scrollback is append-only, the live part leaves nothing behind."""
    screen = Screen(terminal)
    region = LiveRegion(screen)
    region.draw(["one", "two", "three"])
    region.draw(["one", "2"])
    assert shown(terminal) == ["one", "2"]
    region.erase()
    screen.line("written")
    region.draw(["live"])
    assert shown(terminal) == ["written", "live"]


def test_it_takes_a_third_of_the_screen_at_most(terminal: Terminal) -> None:
    """A1."""
    region = LiveRegion(Screen(terminal))
    region.draw([str(number) for number in range(100)])
    assert shown(terminal) == [str(number) for number in range(100 - live_height(), 100)]
    assert live_height() == 8


def test_nothing_is_drawn_where_nothing_can_be_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    region = LiveRegion(Screen(out))
    region.draw(["live"])
    region.erase()
    assert out.getvalue() == ""
    assert not region.is_due


def test_drawing_waits_a_moment_between_two_tokens(terminal: Terminal) -> None:
    now = [0.0]
    region = LiveRegion(Screen(terminal), lambda: now[0])
    assert region.is_due
    region.draw(["a"])
    assert not region.is_due
    now[0] = 1.0
    assert region.is_due
