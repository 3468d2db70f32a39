from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.retrieval.terms import (
    count_terms,
    fold,
    has_cjk,
    identifier_term,
    query_terms,
    runs,
    split_identifier,
    stem,
    terms_of,
)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("parseHTTPHeaders", ["parse", "http", "headers"]),
        ("XMLParser", ["xml", "parser"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("utf8Decode", ["utf8", "decode"]),
        ("__init__", ["init"]),
        ("kebab", ["kebab"]),
    ],
)
def test_identifiers_fall_into_their_parts(name: str, parts: list[str]) -> None:
    assert split_identifier(name) == parts


def test_a_name_meets_its_words_and_its_other_spellings() -> None:
    assert set(terms_of("parseHeaders")) >= {stem("parsing"), stem("header")}
    assert (
        identifier_term("WebSocket")
        == identifier_term("web_socket")
        == identifier_term("websocket")
    )
    assert identifier_term("WebSocket") in terms_of("WebSocket")


def test_japanese_is_cut_into_pairs_and_latin_inside_it_is_found() -> None:
    counts = count_terms(fold("ログインの認証はＡｕｔｈＳｅｒｖｉｃｅにある"))
    assert counts["認証"] == 1
    assert counts["auth"] == 1
    assert identifier_term("AuthService") in counts


def test_width_and_composition_do_not_matter() -> None:
    assert runs(fold("ｶﾞ ＡＢＣ")) == runs(fold("ガ ABC"))
    assert has_cjk("認証")
    assert not has_cjk("auth é")


def test_question_words_go_and_generic_words_weigh_less() -> None:
    weights = query_terms("how does the session class work")
    assert set(weights) == {"session", "class"}
    assert weights["class"] < weights["session"]


def test_a_question_of_question_words_is_not_empty() -> None:
    assert query_terms("how does it work")


def test_data_is_no_word() -> None:
    assert terms_of("A" * 100) == ()
    assert terms_of("12345") == ()


@given(st.text(max_size=200))
def test_any_text_is_counted(text: str) -> None:
    counts = count_terms(fold(text))
    assert all(term and n > 0 for term, n in counts.items())
    assert all(not term.isspace() for term in counts)


def test_a_word_of_one_kanji_meets_the_pairs_it_stands_in() -> None:
    for text in ("鍵を返す", "家の鍵", "鍵はここ"):
        assert query_terms("鍵").keys() & count_terms(text).keys(), text
    assert not query_terms("鍵").keys() & count_terms("錠を返す").keys()
    assert query_terms("は") == {"は": 1.0}
