from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.evaluation.text_format import TextFormat, plain

NEW = "# New\n\nText.\n"


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("a\nb\n", "# New\n\nText.\n"),
        ("a\nb", "# New\n\nText."),
        ("a\r\nb\r\n", "# New\r\n\r\nText.\r\n"),
        ("a\r\nb", "# New\r\n\r\nText."),
        ("\ufeffa\r\nb\r\n", "\ufeff# New\r\n\r\nText.\r\n"),
        ("\ufeff日本語\n", "\ufeff# New\n\nText.\n"),
        ("a\rb\r", "# New\r\rText.\r"),
        ("a\r\nb\r\nc\n", "# New\r\n\r\nText.\r\n"),
        ("a\nb\nc\r\n", "# New\n\nText.\n"),
        ("", "# New\n\nText.\n"),
    ],
)
def test_a_new_text_takes_the_form_of_the_old_one(raw: str, wanted: str) -> None:
    assert TextFormat.of(raw).apply(NEW) == wanted


def test_a_writer_with_other_habits_changes_no_form() -> None:
    assert TextFormat.of("a\r\n").apply("\ufeffx\ny\r\nz") == "x\r\ny\r\nz\r\n"
    assert TextFormat.of("a").apply("x\n\n\n") == "x"


@given(st.text(alphabet="ab \n#日", max_size=30), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_a_text_comes_back_as_it_was(text: str, bom: bool, newline: str) -> None:
    raw = ("\ufeff" if bom else "") + text.replace("\n", newline)
    if TextFormat.of(raw).ends or not text.endswith("\n"):
        assert TextFormat.of(raw).apply(plain(raw)) == raw
