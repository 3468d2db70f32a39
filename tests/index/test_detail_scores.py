from __future__ import annotations

from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.detail_scores import Mentions
from evercontext.index.question_details import read_details
from tests.index.world import SHOP

TREE = SHOP | {"web/cart.py": "def unrelated(): ...\n", "shop/index.js": "", "web/index.js": ""}


def _mentions(text: str) -> tuple[Corpus, Mentions]:
    corpus = Corpus.build([(path, analyse(source, "python")) for path, source in TREE.items()])
    return corpus, Mentions(corpus, read_details(text))


def test_a_path_means_the_file_that_ends_like_it() -> None:
    corpus, mentions = _mentions("in /home/me/site-packages/shop/cart.py:12 and index.js")
    named = {corpus.path(slot): share for slot, share in mentions.paths.items()}
    assert named == {"shop/cart.py": 1.0, "shop/index.js": 0.5, "web/index.js": 0.5}
    assert [lines for lines in mentions.lines.values() if lines] == [{12}]


def test_only_names_that_the_tree_defines_count() -> None:
    corpus, mentions = _mentions("`refund()` and `PaymentGateway.charge` and `no_such_name`")
    assert {corpus.path(slot) for slot in mentions.names} == {"shop/payment.py"}
