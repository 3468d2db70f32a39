from __future__ import annotations

import numpy as np
import pytest

from evercontext.index.analysis import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.features import NAMES, Scorer, by_owner
from evercontext.index.languages import language_of
from evercontext.index.paths import facts_of, words_of
from evercontext.index.question import understand
from evercontext.index.ranking import rank, weights
from evercontext.index.stems import StemMatcher, joined, overlap
from tests.index.world import SHOP


def _corpus(files: dict[str, str]) -> Corpus:
    return Corpus.build(
        (path, analyse(text, language_of(path) or "")) for path, text in files.items()
    )


def test_every_signal_has_a_weight_and_no_weight_is_unknown() -> None:
    assert len(weights()) == len(NAMES) == len(set(NAMES))
    assert np.isfinite(weights()).all()
    assert np.count_nonzero(weights()) > 30


def test_a_grown_corpus_has_the_signals_of_a_built_one() -> None:
    grown = Corpus()
    for path, text in SHOP.items():
        grown.put(path, analyse("def gone(): pass\n", "python"))
        grown.put(path, analyse(text, language_of(path) or ""))
    grown.put("extra.py", analyse("class Cart: pass\n", "python"))
    grown.remove("extra.py")
    built = _corpus(SHOP)
    for query in ("cart total price", "PaymentGateway", "register a Route"):
        question = understand(query)
        rows = {}
        for name, corpus in (("grown", grown), ("built", built)):
            found = Scorer(corpus, question, None).run()
            paths = [corpus.path(slot) for slot in found.slots]
            rows[name] = dict(zip(paths, found.features.tolist(), strict=True))
        assert rows["grown"].keys() == rows["built"].keys()
        for path, values in rows["grown"].items():
            assert values == pytest.approx(rows["built"][path], abs=1e-5)


def test_the_dear_signals_of_files_out_of_reach_are_left_out_and_change_nothing() -> None:
    files = {
        f"{'tests/' if i % 3 else ''}cart_{i}.py": f"def cart_{i}(price):\n    return {i}\n"
        * (1 + i)
        for i in range(30)
    }
    corpus, question = _corpus(files), understand("cart price")
    whole = Scorer(corpus, question, None).run()
    scores = whole.features @ weights()
    expected = whole.slots[np.argsort(-scores, kind="stable")[:5]].tolist()
    ranked = rank(corpus, question, None, 5)
    assert [found.slot for found in ranked] == expected
    by_slot = dict(zip(whole.slots.tolist(), whole.features * weights(), strict=True))
    for found in ranked:
        assert found.shares == pytest.approx(by_slot[found.slot], abs=1e-5)


def test_candidates_are_narrowed_with_their_chunks() -> None:
    found = Scorer(_corpus(SHOP), understand("cart total price"), None).run()
    kept = np.array([1, 0])
    narrow = found.narrowed(kept)
    ends = np.cumsum(found.chunk_counts)
    pieces = [found.chunk_words[ends[i] - found.chunk_counts[i] : ends[i]] for i in kept.tolist()]
    assert narrow.slots.tolist() == found.slots[kept].tolist()
    assert narrow.chunk_words.tolist() == np.concatenate(pieces).tolist()
    assert narrow.features.tolist() == found.features[kept].tolist()


def test_tests_are_demoted_unless_asked_for() -> None:
    files = {"a.py": "def parse(): pass\n", "tests/test_a.py": "def parse(): pass\n" * 3}
    corpus = _corpus(files)
    best = [corpus.path(rank(corpus, understand(q), None, 2)[0].slot) for q in
            ("parse the input", "parse tests")]  # fmt: skip
    assert best == ["a.py", "tests/test_a.py"]


def test_the_last_place_of_ten_goes_to_more_of_the_best_file() -> None:
    parts = "".join(
        f"def parse_{kind}(text):\n    value = read(text)\n    return value.{kind}\n\n\n"
        for kind in ("number", "name", "date")
    )
    others = {f"m{i}.py": f"def parse_m{i}(text):\n    pass\n" for i in range(12)}
    corpus = _corpus({"parse.py": parts, "empty_parse.py": "", **others})
    paths = [corpus.path(r.slot) for r in rank(corpus, understand("parse the text"), None, 10)]
    assert len(set(paths[:9])) == 9
    assert paths[9] == paths[0] == "parse.py"
    named = [corpus.path(r.slot) for r in rank(corpus, understand("parse_m3"), None, 10)]
    assert named[0] == "m3.py"
    assert len(set(named)) == 10


def test_the_chunk_that_is_shown_is_the_function_that_is_asked_for() -> None:
    text = "".join(
        f"def {name}(thing):\n    first = thing\n    return first\n\n\n"
        for name in ("open_file", "close_file", "rename_file", "delete_file")
    )
    corpus = _corpus({"files.py": text, "other.py": "x = 1\n"})
    for query, name in (("rename a file", "rename_file"), ("delete_file", "delete_file")):
        best = rank(corpus, understand(query), None, 1)[0]
        assert corpus.symbol(int(corpus.values("first_chunk")[best.slot]) + best.chunk) == name


def test_scores_fall_and_stay_between_zero_and_one() -> None:
    ranked = rank(_corpus(SHOP), understand("cart item price card"), None, 10)
    scores = [r.score for r in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(
    ("query", "symbol", "names"),
    [
        ("BackgroundTask", "BackgroundTask", ("BackgroundTask",)),
        ("Sinatra::Base", "Base", ("Sinatra", "Base")),
        ("how does applyMiddleware work", None, ("applyMiddleware",)),
        ("session handling", None, ()),
    ],
)
def test_names_in_questions_are_recognised(
    query: str, symbol: str | None, names: tuple[str, ...]
) -> None:
    found = understand(query)
    assert found.symbol == symbol
    assert found.names == names


def test_words_meet_file_names() -> None:
    assert overlap("route", "router") > overlap("round", "router")
    assert overlap("cart", "cart") == 1.0
    assert joined(("web", "socket"))["websocket"] == 2
    matcher = StemMatcher(("web", "socket"), {"web": 1.0, "socket": 2.0})
    near, far = matcher.rows([words_of("src/websocket.py"), words_of("src/http.py")]).tolist()
    assert near > far


@pytest.mark.parametrize(
    ("path", "test", "example", "generated"),
    [
        ("src/app.py", False, False, False),
        ("tests/test_app.py", True, False, False),
        ("pkg/app_test.go", True, False, False),
        ("src/FooTest.java", True, False, False),
        ("examples/a.py", False, True, False),
        ("vendor/lib/a.go", False, False, True),
        ("src/contest.py", False, False, False),
    ],
)
def test_paths_tell_what_they_are(path: str, test: bool, example: bool, generated: bool) -> None:
    facts = facts_of(path)
    assert (facts.test, facts.example, facts.generated) == (test, example, generated)


def test_sums_by_owner() -> None:
    values = np.array([1.0, 5.0, 2.0, 4.0, 3.0], np.float32)
    best, top3, total = by_owner(values, np.array([4, 0, 1], np.int32))
    assert best.tolist() == [5.0, 0.0, 3.0]
    assert top3.tolist() == [11.0, 0.0, 3.0]
    assert total.tolist() == [12.0, 0.0, 3.0]


@pytest.mark.parametrize("query", ["zebra", "?", "a", "カート", "Cart::total", "how does it work"])
@pytest.mark.parametrize("limit", [1, 100])
def test_no_question_is_too_poor(query: str, limit: int) -> None:
    corpora = [_corpus(SHOP), _corpus({"empty.py": "", "a.py": "\n"}), _corpus({})]
    for corpus in corpora:
        found = rank(corpus, understand(query), None, limit)
        assert len(found) <= limit
        assert rank(corpus, understand(query), None, limit, "nowhere/") == []
