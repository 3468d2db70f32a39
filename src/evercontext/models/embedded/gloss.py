"""Japanese instructions in plain English word order, for a model that reads only English.

A gloss, not a translation: a closed list of words around file work. Whatever is not in the list,
above all the text that is to be written, passes through unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

_VERBS = {
    "作成": "create",
    "作って": "create",
    "作る": "create",
    "作り": "create",
    "つくって": "create",
    "つくる": "create",
    "生成": "create",
    "追加": "add",
    "用意": "create",
    "実装": "write",
    "表示": "print",
    "出力": "print",
    "プリント": "print",
    "印字": "print",
    "言う": "print",
    "書いて": "write",
    "書く": "write",
    "書き込む": "write",
    "書き込んで": "write",
    "書き": "write",
    "記述": "write",
    "保存": "write",
    "入れて": "write",
    "入れる": "write",
    "記載": "write",
    "変更": "change",
    "更新": "update",
    "修正": "change",
    "変えて": "change",
    "変える": "change",
    "足す": "add",
    "足して": "add",
    "加算": "add",
    "引く": "subtract",
    "減算": "subtract",
    "掛ける": "multiply",
    "かける": "multiply",
    "乗算": "multiply",
    "割る": "divide",
    "返す": "return",
    "返して": "return",
    "計算": "compute",
    "判定": "check",
    "設定": "set",
    "にする": "set",
    "にして": "set",
    "含む": "contain",
}
_NOUNS = {
    "プログラム": "program",
    "スクリプト": "script",
    "コード": "code",
    "処理": "code",
    "ファイル": "file",
    "フォルダー": "folder",
    "フォルダ": "folder",
    "ディレクトリ": "folder",
    "関数": "function",
    "タイトル": "title",
    "題名": "title",
    "見出し": "heading",
    "テキスト": "text",
    "文字列": "text",
    "文字": "text",
    "メッセージ": "message",
    "内容": "content",
    "中身": "content",
    "キー": "key",
    "値": "value",
    "名前": "name",
    "二つの数": "two numbers",
    "2つの数": "two numbers",
    "ふたつの数": "two numbers",
    "数字": "numbers",
    "整数": "integers",
    "数": "number",
    "合計": "sum",
    "和": "sum",
    "差": "difference",
    "積": "product",
    "偶数": "even",
    "奇数": "odd",
    "平方": "square",
    "二乗": "square",
    "2乗": "square",
    "2倍": "double",
    "二倍": "double",
    "引数": "argument",
}
_PARTICLES = (
    "ように",
    "ための",
    "という",
    "から",
    "まで",
    "には",
    "では",
    "とは",
    "を",
    "に",
    "へ",
    "で",
    "と",
    "は",
    "が",
    "の",
    "も",
)
_ENDINGS = (
    "してください",
    "して下さい",
    "てください",
    "て下さい",
    "ください",
    "下さい",
    "しましょう",
    "します",
    "したい",
    "してほしい",
    "して",
    "する",
    "すること",
    "である",
    "です",
    "ます",
    "た",
    "し",
    "て",
)
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f々〆ー]")
_HIRAGANA = re.compile(r"[\u3040-\u309f]")
_QUOTED = re.compile(r"「([^」]*)」|『([^』]*)』|“([^”]*)”")
_WORDS = sorted(
    [(word, "verb") for word in _VERBS]
    + [(word, "noun") for word in _NOUNS]
    + [(word, "particle") for word in _PARTICLES]
    + [(word, "ending") for word in _ENDINGS],
    key=lambda entry: -len(entry[0]),
)


def is_japanese(text: str) -> bool:
    """True if any part of ``text`` is written in Japanese."""
    return _JAPANESE.search(text) is not None


def to_english(text: str) -> str:
    """Return ``text`` as an English instruction; text without Japanese comes back unchanged."""
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if not is_japanese(text):
        return text
    sentences = (_sentence(part) for part in re.split(r"[。\n]|(?<=[.!?])\s", text))
    return ". ".join(part for part in sentences if part)


@dataclass(slots=True)
class _Clause:
    """Phrases gathered so far, each with the particle behind it."""

    phrases: list[tuple[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    purpose: str = ""

    def close_phrase(self, particle: str = "") -> None:
        if self.words:
            self.phrases.append((" ".join(self.words), particle))
            self.words = []

    def take(self, *particles: str) -> list[str]:
        found = [words for words, particle in self.phrases if particle in particles]
        self.phrases = [entry for entry in self.phrases if entry[1] not in particles]
        return found


def _sentence(text: str) -> str:
    clause = _Clause()
    tokens = _tokens(text)
    for position, (word, kind) in enumerate(tokens):
        if kind == "particle":
            _join(clause, word)
        elif kind == "verb":
            _verb(clause, word, tokens[position + 1 :])
        elif kind == "noun":
            clause.words.append(_NOUNS[word])
        elif kind == "text":
            clause.words.append(word)
    clause.close_phrase()
    rest = [_with_preposition(words, particle) for words, particle in clause.phrases]
    return " ".join([" and ".join(clause.done), *rest]).strip()


def _join(clause: _Clause, particle: str) -> None:
    if particle == "の" and "from" in clause.words:
        clause.close_phrase("modifier")
    elif particle == "の" and clause.words:
        clause.words.append("of")
    elif particle in ("から", "まで") and clause.words:
        clause.words.insert(-1, "from" if particle == "から" else "to")
    else:
        clause.close_phrase(particle)


def _verb(clause: _Clause, word: str, after: list[tuple[str, str]]) -> None:
    clause.close_phrase()
    verb = _VERBS[word]
    ahead, kind = next((token for token in after if token[1] != "ending"), ("", ""))
    if ahead == "ように":
        clause.purpose = f"so that it {_third(verb)} {_last_object(clause)}".rstrip()
    elif kind in ("noun", "text") and not _is_chained(after):
        # Japanese puts "that prints X" before its noun, English behind it.
        modifier = f"that {_third(verb)} {_last_object(clause)}".rstrip()
        clause.phrases.append((modifier, "modifier"))
    else:
        clause.done.append(_finished(clause, verb))


def _is_chained(after: list[tuple[str, str]]) -> bool:
    """True if the verb is joined to a next clause ("…して、…"), not put before a noun."""
    return bool(after) and after[0][0] in ("して", "し", "て", "、", "してください", "て下さい")


def _last_object(clause: _Clause) -> str:
    for position in range(len(clause.phrases) - 1, -1, -1):
        words, particle = clause.phrases[position]
        if particle in ("を", "と", "という", ""):
            del clause.phrases[position]
            return words
    return ""


def _finished(clause: _Clause, verb: str) -> str:
    modifiers = clause.take("modifier")
    topics = [f"{words} is" for words in clause.take("は", "が")]
    objects = clause.take("を", "と", "という", "")
    places = clause.take("に", "へ", "で", "には", "では")
    if verb == "set" and objects and places:
        place = [] if len(places) == 1 else [f"in {places[0]}"]
        return " ".join(["set", *objects, "to", places[-1], *place])
    words = [verb, *topics, *objects, *modifiers]
    words += [f"in {place}" for place in places]
    if clause.purpose:
        words.append(clause.purpose)
        clause.purpose = ""
    return " ".join(words)


def _with_preposition(words: str, particle: str) -> str:
    if particle in ("に", "へ", "で", "には", "では"):
        return f"in {words}"
    return f"{words} is" if particle in ("は", "が") else words


def _third(verb: str) -> str:
    if verb in ("multiply",):
        return "multiplies"
    return f"{verb}es" if verb.endswith(("sh", "ch", "ss")) else f"{verb}s"


def _tokens(text: str) -> list[tuple[str, str]]:
    """Split into (word, kind); quoted and foreign text stays whole."""
    found: list[tuple[str, str]] = []
    start = 0
    for quoted in _QUOTED.finditer(text):
        found += _unquoted(text[start : quoted.start()])
        found.append((f'"{next(part for part in quoted.groups() if part is not None)}"', "text"))
        start = quoted.end()
    return found + _unquoted(text[start:])


def _unquoted(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    plain = ""
    while text:
        known = _known_word(text) if plain == "" or _boundary(plain, text) else None
        if known is None:
            plain, text = plain + text[0], text[1:]
            continue
        _add_plain(found, plain)
        plain = ""
        found.append(known)
        text = text[len(known[0]) :]
    _add_plain(found, plain)
    return found


def _boundary(plain: str, text: str) -> bool:
    """Known words begin anywhere in Japanese, but never inside a foreign word."""
    if not is_japanese(text[0]):
        return not (plain[-1].isalnum() and text[0].isalnum())
    if not _HIRAGANA.match(plain[-1]):
        return True
    # Inside kana ("こんにちはと") a particle counts only where a new word follows it.
    word, _ = _known_word(text) or ("", "")
    rest = text[len(word) :]
    following = _known_word(rest) if rest else None
    return not rest or not _HIRAGANA.match(rest[0]) or (following or ("", ""))[1] == "verb"


def _known_word(text: str) -> tuple[str, str] | None:
    if text[0] in "、,":
        return (text[0], "ending")
    return next(((word, kind) for word, kind in _WORDS if text.startswith(word)), None)


def _add_plain(found: list[tuple[str, str]], plain: str) -> None:
    if plain.strip():
        found.append((plain.strip(), "text"))
