from __future__ import annotations

import numpy as np
import pytest

from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.filename_features import FilenameMatcher, joined, overlap
from evercontext.index.languages import language_of
from evercontext.index.path_features import facts_of, words_of
from evercontext.index.question import understand
from evercontext.index.ranking import rank, weights
from evercontext.index.ranking_features import NAMES, Scorer, by_owner
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
    best = [
        corpus.path(rank(corpus, understand(q), None, 2)[0].slot)
        for q in ("parse the input", "parse tests")
    ]
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
        assert best.symbol == name


@pytest.mark.parametrize(
    ("query", "symbol", "first_line"),
    [
        ("Router", "Router", "class Router:"),
        ("router", "router", "def router(app):"),
        ("Table.match", "Table.match", "def match(self, row):"),
        ("Router.match", "Router.match", "def match(self, url):"),
    ],
)
def test_the_piece_that_is_shown_defines_the_name_as_it_is_spelt(
    query: str, symbol: str, first_line: str
) -> None:
    """F3: a helper, a constructor or a method of the same letters was shown for the class."""
    text = """
def router(app):
    found = Router(app)
    return found.router


class Router:
    limit = 5
    size = 7

    def match(self, url):
        router = self.router
        return Router(router, url)

    def router(self):
        Router.router = Router.Router
        return self.Router


class Table:
    limit = 5
    size = 7

    def match(self, row):
        rows = self.rows
        return rows.match(row)
"""
    corpus = _corpus({"web.py": text, "other.py": "x = 1\n"})
    best = rank(corpus, understand(query), None, 1)[0]
    chunk = int(corpus.values("first_chunk")[best.slot]) + best.chunk
    line = int(corpus.values("chunk_lines")[chunk][0])
    assert best.symbol == symbol
    assert text.split("\n")[line - 1].strip() == first_line


def test_a_merged_chunk_is_named_after_what_was_asked() -> None:
    """F3: "greet" showed a chunk that was called ``subtract``."""
    text = "def subtract(a, b): return a - b\ndef greet(name): return f'hi {name}'\n"
    corpus = _corpus({"a.py": text, "b.py": "x = 1\n"})
    assert rank(corpus, understand("greet"), None, 1)[0].symbol == "greet"
    assert rank(corpus, understand("the difference, subtracted"), None, 1)[0].symbol == (
        "subtract, greet"
    )


def test_a_score_means_the_same_with_a_path_filter() -> None:
    """F3: the same chunk had .447 with a filter and .0003 without."""
    files = {
        f"src/m{i}.py": f"def parse_number_{i}(text):\n    return int(text)\n" for i in range(9)
    }
    corpus = _corpus(files | {"docs/old.py": "def unrelated():\n    return 'parse'\n"})
    question = understand("parse a number from text")
    everywhere = {corpus.path(r.slot): r.score for r in rank(corpus, question, None, 20)}
    for prefix in ("src/m3", "docs/", "src/"):
        for found in rank(corpus, question, None, 20, prefix):
            path = corpus.path(found.slot)
            assert path.startswith(prefix)
            if path in everywhere:
                assert found.score == pytest.approx(everywhere[path], abs=1e-4)


def test_what_is_weak_does_not_fill_up_the_page() -> None:
    """F3: hits below .01 filled up the number that was asked for."""
    others = {f"tests/test_{i}.md": f"some prose about a cart, number {i}\n" for i in range(30)}
    corpus = _corpus({"shop/cart.py": "class Cart:\n    items = []\n    size = 1\n", **others})
    ranked = rank(corpus, understand("Cart"), None, 20)
    assert corpus.path(ranked[0].slot) == "shop/cart.py"
    assert all(found.score >= 0.01 for found in ranked)


def test_reasons_are_true_of_the_chunk_that_is_shown() -> None:
    """F3: reasons were the file's."""
    corpus = _corpus(SHOP)
    for found in rank(corpus, understand("refund PaymentGateway"), None, 5):
        names = corpus.names_in(int(corpus.values("first_chunk")[found.slot]) + found.chunk)
        defined = {named.short_name for named in names if named.begins}
        if "defines a name of the question" in found.reasons:
            assert "PaymentGateway" in defined


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


def test_no_path_hides_a_file_for_good() -> None:
    """25.3: weights of paths were fitted where no right answer contradicted them."""
    given = dict(zip(NAMES, weights().tolist(), strict=True))
    lowest = {"test": -5.0, "example": -2.0, "compat": -1.0, "generated": -2.5, "underscore": -1.0}
    assert {name: given[name] for name, least in lowest.items() if given[name] < least} == {}
    corpus = _corpus(
        {
            "_guard.py": "class SessionGuard:\n    def check(self): ...\n",
            "guard_notes.md": "the session guard\n",
        }
    )
    assert corpus.path(rank(corpus, understand("session guard"), None, 2)[0].slot) == "_guard.py"


def test_words_meet_file_names() -> None:
    assert overlap("route", "router") > overlap("round", "router")
    assert overlap("cart", "cart") == 1.0
    assert joined(("web", "socket"))["websocket"] == 2
    matcher = FilenameMatcher(("web", "socket"), {"web": 1.0, "socket": 2.0})
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
