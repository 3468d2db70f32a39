from __future__ import annotations

import pytest

from evercontext.domain.message import Message, assistant, user
from evercontext.memory.extractive_summary import LONGEST, summarise


@pytest.mark.contract("R51")
def test_a_summary_has_the_request_and_the_result() -> None:
    said = [
        user("Add a retry to the download. The weather is nice."),
        assistant("I will look at the download first."),
        Message("tool", "secret tool output", tool_call_id="1", tool_name="read_file"),
        assistant("```python\ncode()\n```\nThe download now tries three times."),
    ]
    text = summarise(said)
    assert "- user: Add a retry to the download." in text
    assert "- assistant: The download now tries three times." in text
    assert "secret" not in text
    assert "code()" not in text


@pytest.mark.contract("R51")
def test_a_summary_is_bounded_and_in_order() -> None:
    said = [m for i in range(300) for m in (user(f"質問{i}です。"), assistant(f"答え{i}です。"))]
    text = summarise(said)
    assert 0 < len(text) <= LONGEST
    assert text.startswith("- user: 質問0です。")
    assert summarise([]) == ""
    assert summarise([user("```\nonly code")]) == ""
