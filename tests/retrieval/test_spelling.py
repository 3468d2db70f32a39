from __future__ import annotations

from collections.abc import Sequence

import pytest

from evercontext.retrieval.spelling import one_away, repair
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.terms import stem

HELD = {stem(word): often for word, often in {"gateway": 3, "payment": 9, "rewrite": 2}.items()}


def _frequency(terms: Sequence[str]) -> list[int]:
    return [HELD.get(term, 0) for term in terms]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("the paymnet gatway", "the payment gateway"),
        ("PaymentGatway", "PaymentGateway"),
        ("payment_gateawy", "payment_gateway"),
        ("PAYMENNT", "payment"),
        ("rewritte it", "rewrite it"),
        ("決済のgatewy", "決済のgateway"),
        ("the payment gateway", "the payment gateway"),
        ("websocket connection", "websocket connection"),
        ("xqzzyv pays", "xqzzyv pays"),
        ("", ""),
    ],
)
def test_one_wrong_letter_is_repaired_by_what_the_corpus_holds(text: str, repaired: str) -> None:
    """25.4: one wrong letter lost the word that the question turned on."""
    assert repair(text, _frequency, load_static_vectors()) == repaired


def test_a_name_that_is_known_to_be_right_stays() -> None:
    assert repair("Paymentt", _frequency, None, {"paymentt"}) == "Paymentt"


def test_every_slip_of_one_letter_is_tried() -> None:
    assert {"at", "ca", "cart", "bat", "act", "scat"} <= set(one_away("cat"))
