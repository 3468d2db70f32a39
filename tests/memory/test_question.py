from __future__ import annotations

import pytest

from evercontext.memory.question import meant_speakers, wanted_words


@pytest.mark.contract("R54")
def test_question_words_and_names_are_not_looked_for() -> None:
    assert wanted_words("When did Ana go to the pottery class?", {"ana"}) == [
        "go", "pottery", "class",
    ]  # fmt: skip
    assert wanted_words("デプロイはいつですか") == ["デプロイは"]


def test_a_question_of_question_words_alone_keeps_them() -> None:
    assert wanted_words("what is it?") == ["what", "is", "it"]
    assert wanted_words("いつですか") == ["いつですか"]


def test_speakers_are_meant_by_whole_words() -> None:
    known = {"ana": 0, "ben": 1, "田中": 2}
    assert meant_speakers("Where is Ana's book?", known) == {"ana": 0}
    assert meant_speakers("Analyse the bench", known) == {}
    assert meant_speakers("田中さんの予定", known) == {"田中": 2}
