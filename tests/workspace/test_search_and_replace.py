from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evercontext.errors import EditMismatch
from evercontext.workspace.search_and_replace import Edit, apply_edits, find_placeholder, keep_form

CODE = "def f():\n    a = 1\n    return a\n\ndef g():\n    return 2\n"


def once(text: str, old: str, new: str, **more: bool) -> tuple[str, str]:
    after, (applied,) = apply_edits(text, [Edit(old, new, **more)])
    return after, applied.rung


def test_exact() -> None:
    assert once(CODE, "a = 1", "a = 3") == (CODE.replace("a = 1", "a = 3"), "exact")


def test_several_edits_build_on_each_other() -> None:
    after, applied = apply_edits(CODE, [Edit("a = 1", "b = 1"), Edit("b = 1\n", "b = 2\n")])
    assert "    b = 2\n    return a" in after
    assert [done.line for done in applied] == [2, 2]


def test_all_or_none_names_the_edit_that_failed() -> None:
    with pytest.raises(EditMismatch, match="edit 2 of 2: the text is not in the file") as caught:
        apply_edits(CODE, [Edit("a = 1", "a = 2"), Edit("nowhere", "x")])
    assert "Nothing was changed" in str(caught.value)


def test_a_text_that_occurs_twice_is_refused_with_its_lines() -> None:
    with pytest.raises(EditMismatch, match=r"occurs 2 times \(lines 3, 6\)"):
        once(CODE, "    return", "    yield")
    after, _ = once(CODE, "    return", "    yield", replace_all=True)
    assert after.count("yield") == 2


def test_line_endings_of_the_file_are_kept() -> None:
    text = CODE.replace("\n", "\r\n")
    after, rung = once(text, "    a = 1\n    return a\n", "    return 1\n    # end\n")
    assert rung == "line endings"
    assert after == text.replace("    a = 1\r\n    return a\r\n", "    return 1\r\n    # end\r\n")
    after, rung = once(text, "a = 1", "a = 1\n    b = 2")
    assert (after.count("\n"), after.count("\r\n"), rung) == (7, 7, "exact")
    assert once("a\nb\n", "a\r\nb", "c\r\nd") == ("c\nd\n", "line endings")


def test_spaces_at_line_ends_do_not_matter() -> None:
    text = "if x:  \n    y()\t\nz()\n"
    assert once(text, "if x:\n    y()\n", "if q:\n    w()\n") == (
        "if q:\n    w()\nz()\n",
        "spaces at line ends",
    )
    assert once("a  \nb\nc", "a\nb", "x") == ("x\nc", "spaces at line ends")


def test_one_shift_of_indentation() -> None:
    text = "class A:\n    def f(self):\n        if x:\n            return 1\n"
    old = "if x:\n    return 1\n"
    assert once(text, old, "if y:\n    return 2\nelse:\n    return 3\n") == (
        "class A:\n    def f(self):\n        if y:\n            return 2\n"
        "        else:\n            return 3\n",
        "indentation",
    )
    less = "    if x:\n        return 1\n"
    assert once("if x:\n    return 1\n", less, "    pass\n") == ("pass\n", "indentation")
    tabs = "\tif x:\n\t\treturn 1\n"
    assert once(tabs, "if x:\n\treturn 1", "pass") == ("\tpass\n", "indentation")


@pytest.mark.parametrize(
    "old",
    ["if x:\n  return 1\n", "if x:\n\treturn 1\n", "ifx:\n    return 1", "if x:\n    return  1"],
)
def test_nothing_is_guessed(old: str) -> None:
    with pytest.raises(EditMismatch, match="not in the file"):
        once("if x:\n    return 1\n", old, "pass")


def test_a_shift_must_be_unique_too() -> None:
    text = "  a()\n  b()\n\n    a()\n    b()\n"
    with pytest.raises(EditMismatch, match="occurs 2 times"):
        once(text, "      a()\n      b()\n", "      c()\n")


@pytest.mark.parametrize("old", ["", "   ", "\n\n"])
def test_an_empty_search_is_refused(old: str) -> None:
    with pytest.raises(EditMismatch, match="empty"):
        once(CODE, old, "x")


def test_an_edit_that_does_nothing_says_so() -> None:
    with pytest.raises(EditMismatch, match="nothing would change"):
        once(CODE, "a = 1", "a = 1")
    with pytest.raises(EditMismatch, match="the new text already is"):
        once(CODE, "a = 7", "return 2")


def test_the_nearest_lines_are_shown() -> None:
    with pytest.raises(EditMismatch) as caught:
        once(CODE, "    a = 12\n    return a  # done\n", "x")
    assert "    2 |     a = 1\n    3 |     return a" in str(caught.value)


@pytest.mark.parametrize(
    "line", ["# ... rest unchanged", "// ... existing code ...", "<!-- … remaining items -->"]
)
def test_placeholders_are_refused(line: str) -> None:
    assert find_placeholder(CODE, f"def f():\n    {line}\n") == line
    assert find_placeholder(f"{line}\n", f"{line}\n") is None
    with pytest.raises(EditMismatch, match="placeholder"):
        once(CODE, "    a = 1\n", f"    {line}\n")


@pytest.mark.parametrize("line", ["...", "x = ...", "print('... rest')", "print(*rest, ...)"])
def test_ordinary_dots_are_no_placeholders(line: str) -> None:
    assert find_placeholder("", line) is None


def test_a_whole_new_content_keeps_the_form() -> None:
    assert keep_form("\ufeffa\r\nb\r\n", "c\nd\n") == (
        "\ufeffc\r\nd\r\n",
        ("CRLF line endings", "byte order mark"),
    )
    assert keep_form("a\n", "c\r\n") == ("c\r\n", ())
    assert keep_form("a\r\nb\n", "c\n") == ("c\n", ())


words = st.text("ab \n\t", min_size=1, max_size=12)


@given(words, words, words, words)
def test_an_exact_edit_is_plain_replacement(head: str, old: str, tail: str, new: str) -> None:
    text = head + old + tail
    assume(old.strip() and old != new and text.count(old) == 1)
    assert once(text, old, new) == (text.replace(old, new), "exact")


@given(st.text("ab \n\r\t", max_size=40), words, words)
def test_only_the_place_changes(text: str, old: str, new: str) -> None:
    """Whatever matched: outside one contiguous place every character stays."""
    try:
        after, (applied,) = apply_edits(text, [Edit(old, new)])
    except EditMismatch:
        return
    assert applied.places == 1
    length = len(after) - len(text)
    place = max(len(old), len(new)) * 4 + 40
    prefix = next((n for n, (a, b) in enumerate(zip(text, after, strict=False)) if a != b), None)
    assert prefix is None or after[prefix + place + max(length, 0) :] in text


def test_a_file_with_mixed_line_endings_keeps_those_of_each_line() -> None:
    """P16: a whole new content rewrote the endings of lines that stay."""
    before = "a\r\nb\nc\r\nd\ne\r\n"
    after, forms = keep_form(before, "a\nb\nnew\nc\nd\ne\n")
    assert after == "a\r\nb\nnew\r\nc\r\nd\ne\r\n"
    assert forms == ("the line endings of each line",)
    assert keep_form(before, "a\nX\nc\nY\ne\n")[0] == "a\r\nX\r\nc\r\nY\r\ne\r\n"
    assert keep_form(before, before.replace("\r", ""))[0] == before
    assert keep_form(before, "a\r\nb\n") == ("a\r\nb\n", ())
    text, _ = apply_edits(
        "one\r\ntwo\rthree\nfour\r\n", [Edit("one\ntwo\nthree\n", "one\ntwo\n3\n")]
    )
    assert text == "one\r\ntwo\r3\r\nfour\r\n"
    text, _ = apply_edits("a\r\nb\nc\n", [Edit("a\nb", "a\nx\nb")])
    assert text == "a\r\nx\r\nb\nc\n"
