from __future__ import annotations

import numpy as np
import pytest

from evercontext.retrieval.fusion import fuse, standardise
from evercontext.retrieval.hybrid import Field, TextIndex
from evercontext.retrieval.vectors import StaticVectors, load_static_vectors

FIELDS = {"name": Field(worth=3.0), "text": Field()}
TOOLS = {
    "read_file": "Read the content of a file from disk",
    "sendEmail": "Send a message to somebody",
    "weather": "Tell tomorrow's temperature and rain for a city",
    "検索": "ウェブを検索する",
}


def _index(vectors: StaticVectors | None = None) -> TextIndex:
    index = TextIndex(FIELDS, vectors)
    for name, text in TOOLS.items():
        index.put(name, {"name": name, "text": text})
    return index


@pytest.mark.parametrize(
    ("query", "best"),
    [("reading files", "read_file"), ("email", "sendEmail"), ("検索したい", "検索")],
)
def test_words_find_names_and_texts(query: str, best: str) -> None:
    assert _index().search(query)[0].key == best


def test_meaning_finds_what_no_word_names() -> None:
    vectors = load_static_vectors()
    assert vectors is not None
    found = _index(vectors).search("forecast of the climate", 1)[0]
    assert found.key == "weather"
    assert found.signals["words"] == 0
    assert found.signals["meaning"] > 0


def test_a_replaced_or_removed_document_is_forgotten() -> None:
    index = _index()
    index.put("weather", {"name": "weather", "text": "Buy a train ticket"})
    assert not [m for m in index.search("rain temperature") if m.key == "weather"]
    assert index.search("train ticket")[0].key == "weather"
    assert index.remove("weather")
    assert not index.remove("weather")
    assert "weather" not in {m.key for m in index.search("train ticket")}
    assert len(index) == 3


def test_updates_leave_no_trace_in_the_scores() -> None:
    fresh, used = _index(), _index()
    for _ in range(3):
        used.put("noise", {"text": "file message city " * 50})
        used.remove("noise")
    for query in ("read file", "city rain"):
        assert [(m.key, m.signals) for m in fresh.search(query)] == [
            (m.key, m.signals) for m in used.search(query)
        ]


def test_only_allowed_keys_answer() -> None:
    found = _index().search("file message", allow=lambda key: key != "read_file")
    assert "read_file" not in {m.key for m in found}


def test_a_dictionary_can_add_terms() -> None:
    index = TextIndex(FIELDS, expand=lambda query: {"email": 1.0} if "メール" in query else {})
    for name, text in TOOLS.items():
        index.put(name, {"name": name, "text": text})
    assert index.search("メールを送る")[0].key == "sendEmail"


def test_a_silent_signal_changes_nothing() -> None:
    words = np.array([3.0, 1.0, 2.0], np.float32)
    silent = np.zeros(3, np.float32)
    assert fuse({"a": words, "b": silent}, {"a": 1.0, "b": 5.0}).tolist() == (
        standardise(words).tolist()
    )
