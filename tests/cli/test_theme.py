"""The colours of the terminal (A7)."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from evercontext.cli.markdown import rendered
from evercontext.cli.terminal import Screen
from evercontext.cli.theme import code_theme, codes, theme, use_theme


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def dark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TERM", "xterm-256color")
    use_theme("dark")
    yield
    use_theme("dark")


def test_each_theme_paints_differently() -> None:
    dark = Screen(Terminal()).paint("x", "bold", "yellow")
    use_theme("light")
    light = Screen(Terminal()).paint("x", "bold", "yellow")
    use_theme("none")
    assert (dark, light) == ("\x1b[1;33mx\x1b[0m", "\x1b[1;38;5;130mx\x1b[0m")
    assert Screen(Terminal()).paint("x", "bold", "yellow") == "x"
    assert codes(("bold",)) == ""


def test_markdown_has_no_dark_boxes_on_a_light_terminal() -> None:
    """rich draws code on black."""
    assert "40m" in rendered("see `code` here", Screen(Terminal()))
    use_theme("light")
    text = rendered("see `code` here", Screen(Terminal()))
    assert "40m" not in text
    assert "48;" not in text
    assert code_theme() == "ansi_light"


def test_an_unknown_name_is_the_default() -> None:
    use_theme("light")
    use_theme("nothing of the kind")
    assert theme() == "dark"
