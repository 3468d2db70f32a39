"""What is left of a request when its courtesies and values are taken away."""

from __future__ import annotations

import pytest

from evercontext.catalog.query_cleaning import essence


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('Could you please tell me the cast of "Attack on Titan"?', "the cast of ?"),
        ("I'd like to convert 'a b' into euros", "convert into euros"),
        ("映画「君の名は」の上映時間を教えてください", "映画 の上映時間"),
        ("don't stop the server's jobs", "don't stop the server's jobs"),
        ("read /etc/app/settings.json", "read file json"),
        ("what is in /var/log/nginx", "what is in folder directory"),
        ("the user's and the group's names", "the user's and the group's names"),
    ],
)
def test_values_and_courtesies_are_taken_away(text: str, left: str) -> None:
    assert essence(text).split() == left.split()


@pytest.mark.parametrize(
    "text", ['"weather"', "please help me", "「天気」", "教えてください", "", "?"]
)
def test_what_is_said_alone_stays(text: str) -> None:
    assert essence(text) == text


def test_a_long_text_is_read_in_no_time() -> None:
    text = '"' * 3_999 + "/" * 3_999 + "'a" * 2_000
    assert isinstance(essence(text), str)
