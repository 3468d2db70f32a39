"""Long pastes are a mark in the input and whole in the message (A7)."""

from __future__ import annotations

from evercontext.cli.chat.pasted_text import PastedTexts


def test_a_short_paste_is_itself() -> None:
    assert PastedTexts().collapse("a\r\nb") == "a\nb"


def test_a_long_paste_comes_back_whole() -> None:
    """A7: more than 1,000 characters or 15 lines."""
    pasted = PastedTexts()
    lines, letters = "\n".join(map(str, range(16))), "あ" * 1001
    first, second = pasted.collapse(lines), pasted.collapse(letters)
    assert (first, second) == ("[Pasted text #1, 16 lines]", "[Pasted text #2, 1 line]")
    assert pasted.expand(f"see {second} and {first}!") == f"see {letters} and {lines}!"


def test_a_mark_that_was_never_pasted_stays() -> None:
    assert PastedTexts().expand("[Pasted text #7, 3 lines]") == "[Pasted text #7, 3 lines]"
