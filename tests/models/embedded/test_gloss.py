from __future__ import annotations

import pytest

from evercontext.models.embedded.gloss import is_japanese, to_english


@pytest.mark.parametrize(
    ("japanese", "english"),
    [
        ("app に Hello World を作成", "create Hello World in app"),
        ("app/main.pyにHello Worldを作成", "create Hello World in app/main.py"),
        (
            "main.py に Good night を出力する処理を書く",
            "write code that prints Good night in main.py",
        ),
        ("bin/run.py を作成して、Start と表示する", "create bin/run.py and print Start"),
        ("run.py を、Ready と出力するように変更する", "change run.py so that it prints Ready"),
        ("say.py で「おはよう」と表示する", 'print "おはよう" in say.py'),
        ("docs/guide.md を作成。見出しは Guide", "create docs/guide.md. heading is Guide"),
        ("data.json を作成し title を Sample に設定", "create data.json and set title to Sample"),
        (
            "ops.py に 2つの数を引く関数 sub を作って",
            "create function sub that subtracts two numbers in ops.py",
        ),
        ("1から10までの数字を表示する", "print numbers from 1 to 10"),
    ],
)
def test_an_instruction_becomes_english_in_english_order(japanese: str, english: str) -> None:
    assert to_english(japanese) == english


def test_english_is_left_alone_except_for_spaces() -> None:
    assert to_english("Create  a.py\nthat prints Hi") == "Create a.py that prints Hi"


def test_particles_inside_kana_words_are_not_taken_for_particles() -> None:
    assert "こんにちは" in to_english("こんにちはと表示する hi.py を作成")


def test_decomposed_text_is_composed_first() -> None:
    # "で" as て and a combining mark, as some file systems and editors write it.
    assert to_english("say.py て\u3099「か\u3099」と表示する") == 'print "が" in say.py'


def test_only_kana_and_kanji_count_as_japanese() -> None:
    assert is_japanese("作成")
    assert not is_japanese("naïve café №1")


@pytest.mark.parametrize("text", ["", "。", "を", "「」", "をにはと", "表示", "作成作成", "、、、"])
def test_fragments_never_raise(text: str) -> None:
    assert isinstance(to_english(text), str)
