from __future__ import annotations

import numpy as np

from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import FIELDS
from evercontext.index.corpus_rows import PATH_FIELDS, SLOTS, collect
from evercontext.index.languages import language_of
from evercontext.retrieval.term_keys import term_key
from tests.index.world import SHOP

FILES = [(path, analyse(text, language_of(path) or "")) for path, text in SHOP.items()]


def test_many_files_are_laid_end_to_end_like_one_after_the_other() -> None:
    together = collect(FILES, None)
    alone = [collect([file], None) for file in FILES]
    assert together.lengths.tolist() == [row for one in alone for row in one.lengths.tolist()]
    assert together.chunk_lines.tolist() == [r for one in alone for r in one.chunk_lines.tolist()]
    assert len(together.entry_row) == sum(len(one.entry_row) for one in alone)


def test_every_posting_is_one_of_the_analyses() -> None:
    block = collect(FILES, None)
    numbers = block.numbered(lambda keys: np.arange(len(keys), dtype=np.int32))
    terms, chunks, counts = block.body_postings(numbers, chunks=100)
    assert chunks.min() == 100
    assert len(np.unique(chunks)) == sum(len(a.chunks) for _, a in FILES)
    assert counts.sum() == sum(
        int(a.counts.counts[: a.counts.offsets[len(a.chunks)]].sum()) for _, a in FILES
    )
    assert terms.max() < len(block.term_keys)
    fields = np.unique(block.field_postings(numbers, files=7)[1] % SLOTS)
    assert fields.max() < len(PATH_FIELDS) + len(FIELDS)


def test_names_that_are_only_shown_define_nothing() -> None:
    block = collect([("a.rs", analyse("impl Only { fn go() {} }\n", "rust"))], None)
    lower, files = block.symbols(3)
    assert term_key("go") in lower.tolist()
    assert term_key("only") not in lower.tolist()
    assert set(files.tolist()) == {3}


def test_nothing_is_a_block_too() -> None:
    block = collect([], None)
    assert block.paths == []
    assert len(block.all_keys()) == 0
