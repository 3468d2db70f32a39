from __future__ import annotations

import sys

import pytest

from evercontext.cli.markdown import MarkdownStream, rendered
from evercontext.cli.terminal import Screen

TEXT = "# Title\n\nA paragraph\nof two lines.\n\n```python\nx = 1\n\ny = 2\n```\n"
TEXT += "- 日本語\n- two\n\nend"


def blocks(pieces: list[str]) -> list[str]:
    stream = MarkdownStream()
    return [*(block for piece in pieces for block in stream.feed(piece)), stream.end()]


def test_blocks_are_the_same_however_the_text_arrives() -> None:
    whole = blocks([TEXT])
    assert whole == [
        "# Title",
        "A paragraph\nof two lines.",
        "```python\nx = 1\n\ny = 2\n```",
        "- 日本語\n- two",
        "end",
    ]
    assert blocks(list(TEXT)) == whole
    assert blocks([TEXT[n : n + 7] for n in range(0, len(TEXT), 7)]) == whole


def test_the_newest_line_is_known_before_its_block_is_complete() -> None:
    stream = MarkdownStream()
    assert stream.feed("one\ntw") == []
    assert stream.tail == "tw"


def test_an_open_fence_is_shown_at_the_end() -> None:
    assert blocks(["```\nnever closed\n\nmore"]) == ["```\nnever closed\n\nmore"]


@pytest.mark.case(95)
def test_control_characters_are_shown_and_links_keep_their_address() -> None:
    screen = Screen(sys.stdout)
    screen.colour = True
    shown = rendered("[here](http://example.com) \x1b]0;title\x07", screen)
    assert "http://example.com" in shown
    assert "\x1b]" not in shown
    assert "\\x1b]0;title\\x07" in shown
    screen.colour = False
    assert rendered("**as it is**", screen) == "**as it is**"
