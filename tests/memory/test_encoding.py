from __future__ import annotations

import numpy as np
import pytest

from evercontext.memory.encoding import (
    ASKS,
    TERM,
    decode_vectors,
    encode_terms,
    encode_vectors,
)
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import short_term_key


def kept(text: str) -> dict[int, int]:
    pairs = np.frombuffer(encode_terms(text), TERM)
    return dict(zip(pairs["id"].tolist(), pairs["count"].tolist(), strict=True))


def test_terms_are_counted_and_figures_are_terms() -> None:
    terms = kept("Ports 8000 and 9000, port 8000")
    assert terms[short_term_key("8000")] == 2
    assert terms[short_term_key("port")] == 2
    assert kept("ﾎﾟｰﾄ") == kept("ポート")


@pytest.mark.parametrize("text", ["why?", "なぜ？", 'He said "why?"', "why? [shared image: a dog]"])
def test_a_question_is_marked(text: str) -> None:
    assert ASKS in kept(text)
    assert ASKS not in kept(text.replace("?", ".").replace("？", "。"))


def test_a_vector_keeps_its_direction_in_one_byte_per_number() -> None:
    encoder = load_static_vectors()
    assert encoder is not None
    texts = ["The heron nests in May", "デプロイは金曜日に行う", ""]
    name, bytes_ = encode_vectors(texts)
    assert name == encoder.name
    assert all(one is not None and len(one) == encoder.dimensions for one in bytes_)
    back = decode_vectors(bytes_, encoder.dimensions)
    near = np.sum(back * encoder.encode(texts), axis=1)
    assert near[0] > 0.999
    assert near[1] > 0.999
    assert not back[2].any()


def test_a_foreign_vector_counts_for_nothing() -> None:
    assert not decode_vectors([None, b"short"], 4).any()
