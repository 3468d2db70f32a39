from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.retrieval.japanese_dictionary import dictionary, expand, read, units
from evercontext.retrieval.terms import stem
from tests.index.world import SHOP, opened, write


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("認証", "authentication"),
        ("ユーザーの削除", "delete"),
        ("ｻｰﾊﾞｰに接続する", "server"),
        ("設定を読み込む", "setting"),
        ("依存関係の解決", "dependency"),
        ("エラーの例外を送る", "exception"),
    ],
)
def test_software_words_are_translated(text: str, english: str) -> None:
    assert stem(english) in expand(text)


def test_the_longest_word_is_read() -> None:
    known = {"依存": {"depend": 1.0}, "関係": {"relation": 1.0}, "依存関係": {"dependency": 1.0}}
    assert list(read("依存関係の図", known)) == ["依存関係"]
    assert expand("依存関係の図", known) == {"dependency": 1.0}


def test_spelling_of_long_vowels_does_not_matter() -> None:
    assert expand("サーバー") == expand("サーバ") != {}


def test_english_is_left_alone() -> None:
    assert expand("user authentication") == {}


def test_words_that_ask_and_say_nothing_are_dropped() -> None:
    assert expand("実装の方法") == {}


def test_units_cover_runs_parts_and_compound_verbs() -> None:
    found = set(units("接続設定を読み込むサーバー"))
    assert {"接続設定", "接続", "設定", "読み込", "サーバ"} <= found


def test_the_dictionary_holds_words_and_no_sentences() -> None:
    assert len(dictionary()) > 10_000
    assert max(map(len, dictionary())) < 30
    assert all(0 < w <= 1 for stems in dictionary().values() for w in stems.values())


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("クレジットカードの支払い", "shop/payment.py"),
        ("カートの合計金額", "shop/cart.py"),
        ("ルートを登録する関数", "web/routes.ts"),
        ("PaymentGateway はどこ", "shop/payment.py"),
    ],
)
async def test_a_japanese_question_finds_english_code(
    tmp_path: Path, query: str, path: str
) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        assert (await index.search(query)).hits[0].path == path


async def test_a_japanese_question_finds_japanese_comments(tmp_path: Path) -> None:
    write(tmp_path, {**SHOP, "zeikin.py": "# 消費税を計算する\ndef f(x):\n    return x * 0.1\n"})
    async with opened(tmp_path) as index:
        await index.update()
        assert (await index.search("消費税の計算")).hits[0].path == "zeikin.py"
