from __future__ import annotations

import pytest

from evercontext.domain.visible_text import escaped_line, exact, visible


@pytest.mark.parametrize("text", ["plain", "日本語\u3000の文", "a\tb\nc", "é ü ñ"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert exact(text) == text


def test_what_hides_or_steers_is_written_out() -> None:
    assert visible("\x1b[2J\u202e\u3164\u034f\r\n") == "\\x1b[2J\\u202e\\u3164\\u034f\n"
    assert exact("a\r\nb") == "a\\x0d\nb"
    assert exact("x\u00a0\u200d\ufe0f") == "x\\xa0\\u200d\\ufe0f"
    assert exact("ls\u3000x", command=True) == "ls\\u3000x"


def test_emoji_are_drawn_where_nobody_has_to_judge_them() -> None:
    family = "👩\u200d👧 ❤\ufe0f"
    assert visible(family) == family


def test_an_escaped_line_is_one_line_of_what_prints() -> None:
    assert escaped_line("plain 日本語") == "plain 日本語"
    assert escaped_line("a\nb\x1b[2J\ud800") == "a\\nb\\x1b[2J\\ud800"
    assert escaped_line("a" * 9, 4) == "aaaa"
    assert escaped_line("\n" * 9, 4) == "\\n\\n"
