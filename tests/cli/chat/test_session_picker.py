"""The picker of ``chat -r`` (A6): which session is marked after which keys."""

from __future__ import annotations

from evercontext.cli.chat.session_picker import SessionPicker
from evercontext.memory.sessions import Session

TITLES = ("Fix the parser", "日本語の見出し", "Write tests for the parser")


def picker() -> SessionPicker:
    return SessionPicker(
        [
            Session(f"id{number}", "/p", "m", "2026-01-01T00:00:00+00:00", title=title)
            for number, title in enumerate(TITLES)
        ]
    )


def marked(shown: SessionPicker) -> str | None:
    return shown.chosen.id if shown.chosen else None


def test_arrows_stay_inside_the_list() -> None:
    """A6."""
    shown = picker()
    assert marked(shown) == "id0"
    shown.move(-1)
    assert marked(shown) == "id0"
    shown.move(10)
    assert marked(shown) == "id2"


def test_typing_narrows_and_erasing_widens() -> None:
    """A6: every word counts, in any order and any case."""
    shown = picker()
    shown.type("PARSER tests")
    assert [session.id for session in shown.matches] == ["id2"]
    shown.type("x")
    assert shown.chosen is None
    for _ in range(len("PARSER testsx")):
        shown.erase()
    assert len(shown.matches) == len(TITLES)
    shown.type("見出し")
    assert marked(shown) == "id1"
