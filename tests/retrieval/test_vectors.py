"""Which vectors are taken, and that others may be."""

from __future__ import annotations

import pytest

from evercontext.retrieval.hybrid import Field, TextIndex
from evercontext.retrieval.static_model import load_static_model
from evercontext.retrieval.vectors import load_static_vectors, load_wordllama


def test_ours_come_first() -> None:
    assert load_static_vectors() is load_static_model()


@pytest.mark.contract("E38")
def test_one_index_takes_either_table() -> None:
    spare, ours = load_wordllama(), load_static_model()
    if spare is None:
        pytest.skip("wordllama is not installed")
    assert ours is not None
    assert ours.name != spare.name
    for vectors in (spare, ours):
        index = TextIndex({"text": Field()}, vectors)
        index.put("mail", {"text": "send an email to a friend"})
        index.put("kernel", {"text": "compile the kernel from source"})
        assert index.search("write a letter to somebody")[0].key == "mail"
