from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.domain.lenient_json import NotJson, arguments_of, one_object, split_thinking

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```\n',
        'Sure, here it is:\n```json\n{"a": 1}\n```\nThat is all.',
        '\ufeff{"a": 1}',
    ],
)
def test_one_object_is_found_in_what_surrounds_it(text: str) -> None:
    assert one_object(text) == {"a": 1}


@pytest.mark.contract("N30")
def test_raw_control_characters_in_strings_are_kept() -> None:
    raw = '{"content": "line 1\nline 2\ttab\x07bell"}'
    assert one_object(raw) == {"content": "line 1\nline 2\ttab\x07bell"}


def test_a_fence_inside_a_string_is_content() -> None:
    assert one_object('{"content": "```py\\n{}\\n```"}') == {"content": "```py\n{}\n```"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("I will do it now.", "no JSON object"),
        ('{"a": 1', "not valid JSON"),
        ('{"a": 1} {"b": 2}', "more than one"),
        ('{"a": 1}\n```json\n{"b": 2}\n```', "more than one"),
        ('{"a": 1}}', "braces"),
        ('[{"a": 1}]', "list"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a":' + "[" * 100_000, "deep"),
    ],
)
def test_what_would_need_a_guess_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotJson, match=reason):
        one_object(text)


@given(st.text())
def test_any_text_is_an_object_or_refused(text: str) -> None:
    with contextlib.suppress(NotJson):
        assert isinstance(one_object(text), dict)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values))
def test_every_json_object_survives(value: dict[str, object]) -> None:
    for ascii_only in (True, False):
        assert one_object(f"```json\n{json.dumps(value, ensure_ascii=ascii_only)}\n```") == value


def test_thinking_is_split_off() -> None:
    assert split_thinking('<think>\nhm {"x"\n</think>{"a": 1}') == ('hm {"x"', '{"a": 1}')
    assert split_thinking('{"a": "<think>no</think>"}')[0] == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"path": "a.py"}', ({"path": "a.py"}, None)),
        ("", ({}, None)),
        ('{"path": ', ({}, '{"path": ')),
        ('"a.py"', ({}, '"a.py"')),
        ('{"a": 1}{"b": 2}', ({}, '{"a": 1}{"b": 2}')),
    ],
)
def test_arguments_are_parsed_or_handed_on_raw(text: str, expected: object) -> None:
    assert arguments_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"path": "a.py",}', {"path": "a.py"}),
        ("{'path': 'a.py'}", {"path": "a.py"}),
        ('```json\n{"path": "a.py"}\n```', {"path": "a.py"}),
        (r'"{\"path\": \"a.py\"}"', {"path": "a.py"}),
    ],
)
def test_arguments_in_other_spellings_are_read(text: str, expected: dict[str, str]) -> None:
    """Issue 20, replay: nothing is guessed; python benchmarks/replayed_calls.py counts them."""
    assert arguments_of(text) == (expected, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.py"',
        "{'a': 1, 'a': 2}",
        r'{"a": "x\ny",}',
        "{'a': __import__('os')}",
        "{'a': 1 + 1j}",
        '"text"',
    ],
)
def test_what_would_be_a_guess_is_refused(text: str) -> None:
    assert arguments_of(text) == ({}, text)
