"""Hold the messages of the local judge, in English and Japanese."""

from __future__ import annotations

_PHRASES = {
    "form": (
        "this judge looks at form alone (structure, wording, links, code that parses): whether the "
        "document is true was not judged",
        "形式だけを評価しました（構成、文章、リンク、コードの構文）。内容が正しいかどうかは評価していません",
    ),
    "short": (
        "hardly any text (words: {n}): say what it is, how to use it, with an example",
        "本文がほとんどありません（{n}語）: 何のためのものか、使い方、例を書いてください",
    ),
    "thin": (
        "{n} words are little: add what readers will ask next",
        "本文が少なめです（{n}語）: 読者が次に知りたいことを加えてください",
    ),
    "no usage": (
        "no section says how to begin: add installation, usage or an example",
        "始め方の節がありません: 導入、使い方、例のどれかを加えてください",
    ),
    "no title": (
        "there is no title: begin with a heading",
        "題名がありません: 見出しから始めてください",
    ),
    "empty section": ('the section "{what}" is empty', "「{what}」の節が空です"),
    "promise": (
        '"{what}" stands where text should be',
        "「{what}」のままです: 本文を書いてください",
    ),
    "cut off": ("the last sentence does not end", "最後の文が途中で終わっています"),
    "open fence": ("this code block is never closed", "このコードブロックが閉じていません"),
    "broken code": (
        "this {what} code does not parse: {why}",
        "この {what} のコードは構文が正しくありません: {why}",
    ),
    "empty link": ('the link "{what}" has no target', "リンク「{what}」に行き先がありません"),
    "no anchor": (
        "no heading fits the link {what}",
        "リンク {what} に合う見出しがありません",
    ),
    "no file": ("the file {what} does not exist", "ファイル {what} がありません"),
    "garbled": (
        "characters are garbled: save it as UTF-8",
        "文字化けしています: UTF-8 で保存してください",
    ),
    "unbalanced": ("{what} is opened and not closed", "{what} が閉じていません"),
    "open mark": ("a code mark ` is not closed", "コードの記号 ` が閉じていません"),
    "long sentence": (
        "a sentence of {n} words: make two of it",
        "一文が{n}文字あります: 二つに分けてください",
    ),
    "few words": (
        "the same few words are repeated over and over",
        "同じ言葉ばかりが繰り返されています",
    ),
    "no order": (
        "the words are there, the sentences are not: write what a reader can follow",
        "単語が並んでいるだけで文になっていません: 読める文にしてください",
    ),
    "said again": (
        "{n} % of the text was said before: say each thing once",
        "本文の{n}%が同じ文の繰り返しです: 一度だけ書いてください",
    ),
    "endless": (
        "a sentence of {n} words never seems to end",
        "{n}語の文が終わりません",
    ),
    "long paragraph": ("a long paragraph: break it up", "段落が長すぎます: 分けてください"),
    "repeated": ("this repeats line {n} word for word", "{n}行目と同じ文章です"),
    "same heading": ('two headings are "{what}"', "見出し「{what}」が二つあります"),
    "jump": (
        "from level {n} to level {more}: use level {next}",
        "見出しが第{n}階層から第{more}階層へ飛んでいます: 第{next}階層にしてください",
    ),
    "unexplained": ("{what} is never explained", "{what} の説明がありません"),
    "mixed": (
        "polite and plain endings are mixed",
        "「です・ます」と「だ・である」が混ざっています",
    ),
    "no headings": (
        "no headings: a reader cannot find anything",
        "見出しがありません: 読者が探せません",
    ),
    "nothing to do": (
        "no example, no list, no link: give the reader something to act on",
        "例も箇条書きもリンクもありません: 読者がすぐ動けるものを加えてください",
    ),
    "nothing to try": (
        "no example and no link: give the reader something to try or to read on",
        "例もリンクもありません: 読者が試せるもの、続きを読めるものを加えてください",
    ),
    "no example": ("no example to start from", "最初の例がありません"),
    "no language": (
        "name the language of this code block",
        "このコードブロックに言語名を付けてください",
    ),
    "empty code": ("this code block is empty", "このコードブロックは空です"),
    "no description": ("this image has no description", "この画像に説明がありません"),
}


def phrase(japanese: bool, name: str, **facts: object) -> str:
    """One sentence about a document."""
    return _PHRASES[name][japanese].format(**facts)
