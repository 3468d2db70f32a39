from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.errors import PathEscape, PathRefused
from evercontext.files.path_names import TEMPORARY, fold, parse, printable_name
from evercontext.files.policy import FilePolicy


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (".", ()),
        ("./a.txt", ("a.txt",)),
        ("a//b/./c.py", ("a", "b", "c.py")),
        ("a/../b.py", ("b.py",)),
        ("日本語/メモ.txt", ("日本語", "メモ.txt")),
        ("foo~", ("foo~",)),
        ("a b.txt", ("a b.txt",)),
        ("[id].tsx", ("[id].tsx",)),
    ],
)
@pytest.mark.contract("E21")
def test_ordinary_paths(path: str, parts: tuple[str, ...]) -> None:
    assert parse(path) == parts


@given(st.text())
def test_whatever_is_parsed_is_plain(path: str) -> None:
    try:
        parts = parse(path)
    except (PathEscape, PathRefused):
        return
    for name in parts:
        assert name not in ("", ".", "..")
        assert not set(name) & set("/\\:\0\n\r\x1b")
        assert unicodedata.is_normalized("NFC", name)
        assert not TEMPORARY.fullmatch(name)


names = st.sampled_from(["a", "b.py", "..", ".", "", "c d"])


@given(st.lists(names, min_size=1))
def test_dots_never_lead_above_the_root(pieces: list[str]) -> None:
    depth, escaped = 0, False
    for piece in pieces:
        depth += {"..": -1, ".": 0, "": 0}.get(piece, 1)
        escaped = escaped or depth < 0
    path = "/".join(pieces)
    if not path or path.startswith("/") or escaped:
        with pytest.raises((PathEscape, PathRefused)):
            parse(path)
    else:
        assert len(parse(path)) == depth


@given(st.sampled_from([".git", ".env", ".vscode", "id_rsa"]), st.data())
def test_no_spelling_of_a_protected_name_gets_through(name: str, data: st.DataObject) -> None:
    wide = {c: chr(ord(c) + 0xFEE0) for c in name if "!" <= c <= "~"}
    spelled = "".join(data.draw(st.sampled_from([c, c.upper(), wide.get(c, c)])) for c in name)
    assert FilePolicy().protects(spelled)


@given(st.binary())
def test_any_name_prints_on_one_line(raw: bytes) -> None:
    shown = printable_name(raw.decode("utf-8", "surrogateescape"))
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown


def test_folding_is_stable() -> None:
    assert fold("．ＧＩＴ") == ".git"
