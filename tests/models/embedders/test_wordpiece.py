from __future__ import annotations

import pytest

from evercontext.models.embedders.wordpiece import cut, vocabulary


def _pieces(text: str, most: int = 256) -> list[str]:
    words = {number: word for word, number in vocabulary().items()}
    return [words[i] for i in cut(text, most)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        # As the model's own tokenizer cuts them.
        ("Embeddings", ["em", "##bed", "##ding", "##s"]),
        ("def add_item(x):", ["def", "add", "_", "item", "(", "x", ")", ":"]),
        ("Été", ["et", "##e"]),
        ("日本語", ["日", "本", "語"]),
        ("a\u200bb\tc", ["ab", "c"]),
        ("…", ["…"]),
        ("🎉", ["[UNK]"]),
        ("x" * 101, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_are_cut_as_the_model_learned_them(text: str, pieces: list[str]) -> None:
    assert _pieces(text) == ["[CLS]", *pieces, "[SEP]"]


def test_a_long_text_is_cut_off_before_its_end_mark() -> None:
    found = _pieces("word " * 1000, most=16)
    assert len(found) == 16
    assert (found[0], found[-1]) == ("[CLS]", "[SEP]")
