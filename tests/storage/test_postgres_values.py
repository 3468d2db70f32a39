from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.errors import DiskFull, EverContextError, StoreClash, StoreGone, StoreTimeout
from evercontext.storage.postgres_values import incoming, meaning_of, numbered, outgoing


def test_marks_get_numbers_except_inside_strings() -> None:
    assert (
        numbered("a = ? AND b = '?''?' AND c IN (?, ?)")
        == "a = $1 AND b = '?''?' AND c IN ($2, $3)"
    )


@given(st.text(st.sampled_from("a\0\U000f00fe01日")))
def test_any_text_comes_back_and_none_is_sent_with_a_nul(text: str) -> None:
    [sent] = outgoing([text])
    assert "\0" not in sent
    assert incoming([{"x": sent}]) == [{"x": text}]


def test_truth_is_a_number_and_no_number_is_too_large() -> None:
    assert outgoing([True, None, b"x", 1.5]) == [1, None, b"x", 1.5]
    with pytest.raises(OverflowError):
        outgoing([2**63])


@pytest.mark.case(122)
@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (psycopg.errors.SerializationFailure(), StoreClash),
        (psycopg.errors.DeadlockDetected(), StoreClash),
        (psycopg.errors.AdminShutdown(), StoreGone),
        (psycopg.errors.CannotConnectNow(), StoreGone),
        (psycopg.errors.QueryCanceled(), StoreTimeout),
        (psycopg.errors.DiskFull(), DiskFull),
    ],
)
def test_what_the_server_means(error: psycopg.Error, meant: type[EverContextError]) -> None:
    assert type(meaning_of(error)) is meant
