from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.cli.terminal import Screen, clip, columns_of, counted, one_line, visible, wrap


@pytest.mark.case(95)
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("one\r\ntwo", "one\ntwo"),
        ("over\rwritten", "over\\x0dwritten"),
        ("日本語\tと\n改行", "日本語\tと\n改行"),
        ("👩‍💻 é", "👩‍💻 é"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.case(95)
@given(st.text())
def test_nothing_visible_moves_the_cursor(text: str) -> None:
    for character in visible(text):
        assert character in "\n\t" or (ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0)
    assert "\n" not in one_line(text)


@given(st.text(), st.integers(2, 60))
def test_clipped_text_fits(text: str, columns: int) -> None:
    assert columns_of(clip(one_line(text), columns)) <= columns


def test_japanese_counts_two_columns() -> None:
    assert columns_of("日本") == 4
    assert clip("日本語です", 7) == "日本語…"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert Screen(Terminal()).paint("x", "red") == "\x1b[31mx\x1b[0m"
    assert Screen(Terminal(), no_color=True).paint("x", "red") == "x"
    assert Screen(io.StringIO()).paint("x", "red") == "x"
    monkeypatch.setenv("TERM", "dumb")
    assert Screen(Terminal()).paint("x", "red") == "x"


class GonePipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_leaves_stops_the_output_not_the_work() -> None:
    screen = Screen(GonePipe())
    screen.line("one")
    screen.line("two")


def test_one_is_not_counted_as_many() -> None:
    assert [counted(n, "file") for n in (0, 1, 2, 1234)] == [
        "0 files",
        "1 file",
        "2 files",
        "1,234 files",
    ]
    assert [counted(n, "memory", "memories") for n in (1, 2)] == ["1 memory", "2 memories"]


def test_a_word_in_katakana_is_not_broken() -> None:
    """A6: Japanese is broken between words where it can be; a word longer than the line is cut."""
    assert wrap("合計は 13,140 トークンでした", 20) == ["合計は 13,140", "トークンでした"]
    assert "".join(wrap("コンテキストウィンドウ", 8)) == "コンテキストウィンドウ"
    assert all(columns_of(row) <= 8 for row in wrap("コンテキストウィンドウ", 8))
