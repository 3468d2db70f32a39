from __future__ import annotations

import numpy as np
import pytest

from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.definition_features import DefinedNames, Definers, shares

FILES = {
    "a.py": "class Cart:\n    def add_item(self):\n        pass\n",
    "b.py": "def cart():\n    return Cart()\n",
    "c.py": "print(add_item)\n",
    "d.py": "",
}


def _corpus() -> Corpus:
    return Corpus.build((path, analyse(text, "python")) for path, text in FILES.items())


def test_who_defines_a_name_and_how() -> None:
    corpus = _corpus()
    found = Definers(corpus, "Cart", {0: 5, 1: 6, 2: 7})
    assert (found.count, found.at) == (2, [5, 6])
    assert found.exact().tolist() == [1.0, 0.0]
    assert found.typed().tolist() == [1.0, 0.0]


def test_definers_that_are_no_candidates_only_count() -> None:
    found = Definers(_corpus(), "cart", {1: 0})
    assert (found.count, found.at) == (2, [0])
    assert found.exact().tolist() == [1.0]
    nobody = Definers(_corpus(), "zebra", {1: 0})
    assert (nobody.count, nobody.at, nobody.exact().tolist()) == (0, [], [])


def test_the_best_name_of_each_file_covers_the_question() -> None:
    corpus = _corpus()
    add, item = corpus.numbers(["add", "item"])
    assert add is not None
    assert item is not None
    names = DefinedNames(corpus, np.arange(4, dtype=np.int32))
    covered, exact = names.covered({item: 0.25})
    assert covered.tolist() == [0.25, 0.0, 0.0, 0.0]
    assert exact.tolist() == [0.125, 0.0, 0.0, 0.0]
    covered, exact = names.covered({add: 0.5, item: 0.25})
    assert covered[0] == exact[0] == pytest.approx(0.75)


def test_files_without_names_cover_nothing() -> None:
    names = DefinedNames(_corpus(), np.array([2, 3], np.int32))
    assert [values.tolist() for values in names.covered({0: 1.0})] == [[0.0, 0.0]] * 2
    assert names.used_elsewhere().tolist() == [0.0, 0.0]


def test_use_by_other_files_counts_where_a_name_is_defined_alone() -> None:
    used = DefinedNames(_corpus(), np.arange(4, dtype=np.int32)).used_elsewhere()
    assert used.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_shares_of_parts() -> None:
    found = shares(np.array([3, 1, 3, 2], np.int32), {3: 0.5, 9: 0.25})
    assert found.tolist() == [0.5, 0.0, 0.5, 0.0]
