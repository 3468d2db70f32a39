from __future__ import annotations

from collections import Counter

import numpy as np

from evercontext.index import source_terms as module
from evercontext.index.source_terms import Lexicon, ScannedWords, TermCounter, line_starts, scan
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import term_key
from evercontext.retrieval.terms import count_terms
from evercontext.retrieval.vectors import BYTE_SCALE

ROWS = ["def parse_header(header):", "return parseHeaders(header) + parse", "", "parse names"]


def scanned(rows: list[str]) -> ScannedWords:
    data = "\n".join(("", *rows, "")).encode()
    return scan(data, line_starts(data)[:-1])


def counted(rows: list[str]) -> list[Counter[int]]:
    """Return for each row how often each key is counted."""
    terms, counts = TermCounter(Lexicon(), scanned(rows)).terms(len(rows), np.zeros(0, np.uint64))
    assert terms.tolist() == sorted(set(terms.tolist()))
    found = []
    for i in range(len(rows)):
        part = counts.row(i)
        keys, times = terms[counts.positions[part]], counts.counts[part]
        found.append(Counter(dict(zip(keys.tolist(), times.tolist(), strict=True))))
    return found


def wanted(rows: list[str]) -> list[Counter[int]]:
    return [Counter({term_key(t): n for t, n in count_terms(row).items()}) for row in rows]


def test_terms_are_counted_row_by_row() -> None:
    assert counted(ROWS) == wanted(ROWS)


def test_a_table_that_would_be_too_large_is_counted_otherwise() -> None:
    rows = [f"word{i % 1500} other{i % 7} word{i % 1500}" for i in range(1_600)]
    assert len(rows) * 1500 > module._MOST_CELLS
    assert counted(rows) == wanted(rows)


def test_names_are_among_the_terms_though_no_row_holds_them() -> None:
    name = np.array([term_key("elsewhere")], np.uint64)
    terms, counts = TermCounter(Lexicon(), scanned(ROWS)).terms(2, name)
    assert name[0] in terms
    assert len(counts.offsets) == 3
    assert term_key("name") not in terms.tolist()


def test_meaning_is_that_of_the_text() -> None:
    vectors = load_static_vectors()
    assert vectors is not None
    rows = [f"open the database and read row {i}" for i in range(3 * module._AT_ONCE)]
    rows += ["the header field", "sparrow sings in the tree"]
    found = TermCounter(Lexicon(vectors), scanned(rows)).meaning(len(rows) - 2, len(rows) - 1)
    assert found.shape == (len(rows) - 1, vectors.dimensions)
    texts = vectors.encode([rows[0], rows[-1]])
    close = (found[[0, -2, -1]].astype(np.float32) / BYTE_SCALE) @ texts.T
    assert min(close[0, 0], close[1, 0], close[2, 1]) > 0.9
    assert close[0, 1] < 0.7
