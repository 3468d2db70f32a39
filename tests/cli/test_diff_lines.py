"""Diffs with line numbers and the colours of their language (A1, A6)."""

from __future__ import annotations

import io
import re

import pytest

from evercontext.cli.diff_lines import numbered_diff
from evercontext.cli.terminal import Screen

DIFF = """--- a/a.py
+++ b/a.py
@@ -9,3 +9,3 @@ def f():
 a = 1
-b = 2
+b = "two"  # 二
 c = 3
@@ -120 +120 @@
-old
+new\x1b[31m
"""
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_line_has_the_number_it_has_in_its_file() -> None:
    """A1: readable without colours; nothing of a file reaches the terminal as a sequence."""
    lines = numbered_diff(Screen(io.StringIO()), DIFF, "a.py")
    assert lines == [
        "  …   def f():",
        "  9   a = 1",
        " 10 - b = 2",
        ' 10 + b = "two"  # 二',
        " 11   c = 3",
        "  …",
        "120 - old",
        "120 + new\\x1b[31m",
    ]


def test_colours_change_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A1."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = numbered_diff(Screen(Terminal()), DIFF, "src/a.py")
    plain = numbered_diff(Screen(io.StringIO()), DIFF, "src/a.py")
    assert [COLOUR.sub("", line) for line in coloured] == plain
    assert coloured[3].count("\x1b[") > coloured[1].count("\x1b[")


def test_an_unknown_language_is_painted_by_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = numbered_diff(Screen(Terminal()), "@@ -1 +1 @@\n-a\n+b\n", "a.nothing")
    assert lines == [
        "\x1b[31m  1 -\x1b[0m \x1b[31ma\x1b[0m",
        "\x1b[32m  1 +\x1b[0m \x1b[32mb\x1b[0m",
    ]


def test_line_ends_show_where_they_differ() -> None:
    screen = Screen(io.StringIO())
    assert numbered_diff(screen, "@@ -1 +1 @@\n-a\r\n+b\r\n") == ["  1 - a", "  1 + b"]
    assert numbered_diff(screen, "@@ -1 +1 @@\n-a\r\n+a\n") == ["  1 - a\\x0d", "  1 + a"]
    assert numbered_diff(screen, "") == []
