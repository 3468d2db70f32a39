from __future__ import annotations

import pytest

from evercontext.memory.question import meant_speakers, wanted_terms, wanted_words
from evercontext.retrieval.term_keys import short_term_key


@pytest.mark.contract("R54")
def test_question_words_and_names_are_not_looked_for() -> None:
    assert wanted_words("When did Ana go to the pottery class?", {"ana"}) == [
        "go",
        "pottery",
        "class",
    ]
    assert wanted_words("デプロイはいつですか") == ["デプロイは"]


def test_a_question_of_question_words_alone_keeps_them() -> None:
    assert wanted_words("what is it?") == ["what", "is", "it"]
    assert wanted_words("いつですか") == ["いつですか"]


def test_speakers_are_meant_by_whole_words() -> None:
    known = {"ana": 0, "ben": 1, "田中": 2}
    assert meant_speakers("Where is Ana's book?", known) == {"ana": 0}
    assert meant_speakers("Analyse the bench", known) == {}
    assert meant_speakers("田中さんの予定", known) == {"田中": 2}


def test_pairs_that_are_grammar_are_worth_less() -> None:
    worth = wanted_terms(["設定の形式を", "TOML"])
    told = [worth[short_term_key(pair)] for pair in ("設定", "定の", "の形", "形式", "式を")]
    assert told[0] == told[3] == worth[short_term_key("toml")] == 1.0
    assert told[2] < told[1] == told[4] < 1.0


def test_a_pair_counts_as_what_it_is_worth_at_best() -> None:
    assert wanted_terms(["のの", "いのの"])[short_term_key("のの")] == 1.0


def test_a_word_of_one_kanji_meets_the_pairs_it_stands_in() -> None:
    wanted = wanted_terms(wanted_words("鍵はどこですか"))
    assert short_term_key("鍵は") in wanted
    assert short_term_key("の鍵") in wanted_terms(wanted_words("鍵"))
