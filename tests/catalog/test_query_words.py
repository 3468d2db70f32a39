from __future__ import annotations

import pytest

from evercontext.catalog.query_words import as_written


@pytest.mark.parametrize(
    ("text", "terms", "words"),
    [
        ("Delete the files", ["delet", "fil"], ["delete", "files"]),
        ("readFile now", ["fil"], ["file"]),
        ("readFile now", ["read", "fil", "readfil"], ["readfile"]),
        ("勤怠管理を見る", ["勤怠", "怠管", "管理", "見る"], ["勤怠管理", "見る"]),
        ("files FILES file", ["fil"], ["files", "file"]),
        ("nothing", ["fil"], []),
    ],
)
def test_words_as_they_were_written(text: str, terms: list[str], words: list[str]) -> None:
    assert as_written(terms, text) == words


def test_japanese_behind_english_stems() -> None:
    assert as_written(["fil", "delet"], "ファイルを削除") == ["ファイル", "削除"]
