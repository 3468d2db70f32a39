from __future__ import annotations

import pytest

from evercontext.domain.model import StopReason
from evercontext.models.stop_reasons import broke_off, stop_reason


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "end"),
        ("end_turn", "end"),
        ("tool_use", "tool_calls"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "filtered"),
        ("refusal", "filtered"),
        ("SAFETY", "filtered"),
        ("something new", "end"),
        (None, "end"),
    ],
)
def test_every_vendors_word_has_a_meaning(word: str | None, reason: StopReason) -> None:
    """P6"""
    assert stop_reason(word) == reason


def test_a_server_that_gave_up_in_the_middle_did_not_end_its_answer() -> None:
    assert broke_off("error")
    assert broke_off("insufficient_system_resource")
    assert not broke_off("stop")
    assert not broke_off(None)
