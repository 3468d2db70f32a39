from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from evercontext.index import source_terms as module
from evercontext.index.source_terms import line_starts, scan
from evercontext.retrieval.terms import fold, runs

ALPHABET = "abzAZ09_ \t\n.()é“”ßΩ日本カな한\ud800"


def words(text: str) -> list[tuple[int, str]]:
    """Return the words found in a text with the lines they are on."""
    data = ("\n" + text + "\n").encode("utf-8", "surrogatepass")
    found = scan(data, line_starts(data)[: text.count("\n") + 1])
    return sorted(zip(found.rows.tolist(), found.texts(np.arange(len(found))), strict=True))


@given(st.text(ALPHABET, max_size=200))
@example("")
@example("x“quoted”y 日本語word")
def test_the_words_are_those_of_the_pattern(text: str) -> None:
    text = fold(text)
    wanted = [(i, run) for i, line in enumerate(text.split("\n")) for run in runs(line)]
    assert words(text) == sorted(wanted)


@given(st.lists(st.text("abAB01_", min_size=1, max_size=12), max_size=60))
def test_a_word_has_one_number_wherever_it_stands(given_words: list[str]) -> None:
    data = ("\n" + "\n".join(given_words) + "\n").encode()
    numbers = scan(data, np.array([0])).numbers.tolist()
    known: dict[str, int] = {}
    for word, number in zip(given_words, numbers, strict=True):
        assert known.setdefault(word, number) == number
    assert len(set(known.values())) == len(known)


def test_a_wide_word_has_the_number_of_its_parts() -> None:
    data = "\nplain\n“plain”\n".encode()
    found = scan(data, line_starts(data)[:-1])
    assert found.texts(np.arange(2)) == ["plain", "plain"]
    assert found.numbers[0] == found.numbers[1]
    assert found.rows.tolist() == [0, 1]


def test_long_texts_are_worked_on_in_blocks() -> None:
    line = "alpha beta_2 " * 40
    text = "\n".join([line] * (3 * module._BLOCK // len(line)))
    found = words(text)
    assert len(found) == 80 * (text.count("\n") + 1)
    assert {word for _, word in found} == {"alpha", "beta_2"}
    endless = "gamma " * module._BLOCK
    assert len(words(endless + "\n" + endless)) == 2 * module._BLOCK
