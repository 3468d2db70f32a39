from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evercontext.index import corpus_snapshot
from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.corpus_snapshot import FILE, CorpusStamp
from evercontext.index.languages import language_of
from evercontext.index.question import understand
from evercontext.index.ranking import rank
from evercontext.retrieval.static_vectors import load_static_vectors
from tests.index.world import SHOP

QUERIES = ("cart total price", "PaymentGateway", "register a Route", "charge a card")


def _corpus() -> Corpus:
    vectors = load_static_vectors()
    files = [(path, analyse(text, language_of(path) or "", vectors)) for path, text in SHOP.items()]
    return Corpus.build(files, vectors)


def _saved(folder: Path) -> Corpus:
    corpus = _corpus()
    stamp = CorpusStamp("table", 7, corpus_snapshot.space_of(corpus.vectors))
    corpus_snapshot.save(folder, corpus, stamp)
    return corpus


def _answers(corpus: Corpus) -> list[list[tuple[str, int, float]]]:
    return [
        [(corpus.path(r.slot), r.chunk, r.score) for r in rank(corpus, understand(q), None, 10)]
        for q in QUERIES
    ]


def test_a_mapped_corpus_answers_like_the_one_it_was_made_of(tmp_path: Path) -> None:
    built = _saved(tmp_path)
    found = corpus_snapshot.load(tmp_path, "table", load_static_vectors())
    assert found is not None
    mapped, generation = found
    assert generation == 7
    assert _answers(mapped) == _answers(built)
    assert mapped.names_in(0) == built.names_in(0)


def test_a_mapped_corpus_follows_changes_and_leaves_its_file_alone(tmp_path: Path) -> None:
    built = _saved(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    found = corpus_snapshot.load(tmp_path, "table", load_static_vectors())
    assert found is not None
    for corpus in (built, found[0]):
        corpus.put("shop/cart.py", analyse("class Basket: pass\n", "python", load_static_vectors()))
        corpus.put("new.py", analyse("def charge_twice(): pass\n", "python", load_static_vectors()))
        corpus.remove("web/routes.ts")
    assert _answers(found[0]) == _answers(built)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("place", [0, 9, 14, 18, 60, 4_000, -1])
def test_a_damaged_snapshot_is_thrown_away(tmp_path: Path, place: int) -> None:
    _saved(tmp_path)
    data = bytearray((tmp_path / FILE).read_bytes())
    data[place] ^= 0x40
    (tmp_path / FILE).write_bytes(data)
    assert corpus_snapshot.load(tmp_path, "table", load_static_vectors()) is None
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("size", [0, 5, 24, 1_000])
def test_a_cut_off_snapshot_is_thrown_away(tmp_path: Path, size: int) -> None:
    _saved(tmp_path)
    os.truncate(tmp_path / FILE, size)
    assert corpus_snapshot.load(tmp_path, "table", load_static_vectors()) is None
    assert not (tmp_path / FILE).exists()


def test_a_snapshot_of_another_table_or_other_vectors_is_not_used(tmp_path: Path) -> None:
    _saved(tmp_path)
    assert corpus_snapshot.load(tmp_path, "other", load_static_vectors()) is None
    _saved(tmp_path)
    assert corpus_snapshot.load(tmp_path, "table", None) is None


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _saved(elsewhere)
    (tmp_path / FILE).symlink_to(elsewhere / FILE)
    assert corpus_snapshot.load(tmp_path, "table", load_static_vectors()) is None
    assert (elsewhere / FILE).exists()


def test_a_later_term_is_found_in_a_mapped_corpus(tmp_path: Path) -> None:
    _saved(tmp_path)
    found = corpus_snapshot.load(tmp_path, "table", load_static_vectors())
    assert found is not None
    corpus = found[0]
    assert corpus.term("zebra") is None
    corpus.put("z.py", analyse("zebra = 1\n", "python", load_static_vectors()))
    number = corpus.term("zebra")
    assert number is not None
    assert corpus.values("frequency")[number] == 1
    assert isinstance(corpus.values("frequency"), np.ndarray)
