from __future__ import annotations

import math

import numpy as np
import pytest

from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.question import understand
from evercontext.index.word_scores import QuestionScores
from evercontext.retrieval.terms import stem

FILES = {
    "cart.py": "def total(cart):\n    return cart.price\n",
    "card.py": "def pay(card):\n    return card\n",
    "shop/cart_item.py": "class Item:\n    price = 1\n",
}


def _corpus(files: dict[str, str] = FILES) -> Corpus:
    return Corpus.build((path, analyse(text, "python")) for path, text in files.items())


def test_files_that_hold_a_word_score_and_others_do_not() -> None:
    corpus = _corpus()
    scores = dict(
        zip(corpus.paths(), QuestionScores(corpus, understand("cart")).bm25f(), strict=True)
    )
    assert scores["cart.py"] > scores["shop/cart_item.py"] > 0
    assert scores["card.py"] == 0


def test_words_that_no_file_holds_lower_the_share_of_the_others() -> None:
    corpus = _corpus()
    known, more = (QuestionScores(corpus, understand(text)) for text in ("cart", "cart zebra"))
    assert len(known.weights) == len(more.weights) == 1
    assert more.total == pytest.approx(known.total + 0.5 * math.log(2 * 3 + 2))
    assert len(QuestionScores(corpus, understand("zebra")).weights) == 0
    assert not QuestionScores(corpus, understand("zebra")).bm25f().any()


def test_chunks_and_fields_are_counted_in_the_candidates_alone() -> None:
    corpus = _corpus()
    words = QuestionScores(corpus, understand("cart price"))
    slots = np.array([0, 2], np.int32)
    chunks, counts = words.in_candidates(slots)
    assert len(chunks) == int(corpus.values("chunk_count")[slots].sum())
    assert (chunks > 0).all()
    assert counts.shape == (2, 2, 8)
    stems, bodies = counts[0, :, 0], counts[:, :, -1]
    assert stems.tolist() == [1.0, 1.0]
    assert bodies.tolist() == [[2.0, 0.0], [1.0, 1.0]]


def test_a_replaced_file_is_counted_as_it_is_now() -> None:
    corpus = _corpus()
    corpus.put("card.py", analyse("def cart(price):\n    return price\n", "python"))
    built = _corpus(FILES | {"card.py": "def cart(price):\n    return price\n"})
    question = understand("cart price")
    for path in FILES:
        values = [
            QuestionScores(each, question).bm25f()[
                max(i for i, p in enumerate(each.paths()) if p == path)
            ]
            for each in (corpus, built)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_what_a_name_may_share_with_the_question() -> None:
    corpus = _corpus()
    words = QuestionScores(corpus, understand("cart price zebra"))
    assert set(words.term_weights) == {corpus.term(stem("cart")), corpus.term(stem("price"))}
    assert 0 < sum(words.term_weights.values()) < 1
    assert words.word_weights["zebra"] > words.word_weights["cart"]
