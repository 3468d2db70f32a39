from __future__ import annotations

import pytest

from evercontext.storage.fulltext_query import for_postgres, for_sqlite


def test_long_words_go_to_the_index_and_short_ones_to_the_text() -> None:
    condition, values = for_sqlite(["gateway", "支払"])
    assert "MATCH" in condition
    assert "LIKE" in condition
    assert values == ['"gateway"', "%支払%"]


@pytest.mark.case(116)
def test_no_word_is_syntax() -> None:
    assert for_sqlite(['say "hi"', "NEAR("])[1] == ['"say ""hi""" "NEAR("']
    assert for_postgres(["100%_!"])[1] == ["%100!%!_!!%"]
