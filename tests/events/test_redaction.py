from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.events.redaction import LONGEST, MARGIN, MASK, Redactor, secret_values

# Without brackets a secret cannot be formed again across the mask itself.
SECRET = st.text(st.characters(exclude_characters="[]"), min_size=8, max_size=40)


@pytest.mark.case(135)
@given(SECRET, st.text(max_size=30), st.text(max_size=30))
def test_a_known_secret_never_survives(secret: str, before: str, after: str) -> None:
    value = {"a": [before + secret + after, {"k" + secret: (secret,)}], "n": 1}
    clean = Redactor([secret]).value(value)
    assert all(secret not in text for text in _strings(clean))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for pair in value.items() for part in pair for s in _strings(part)]
    if isinstance(value, list):
        return [s for item in value for s in _strings(item)]
    return []


@pytest.mark.case(135)
@pytest.mark.parametrize(
    "shape",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-1234567890-abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefg",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_credentials_are_known_by_their_shape(shape: str) -> None:
    assert Redactor().text(f"here: {shape} end") == f"here: {MASK} end"
    assert Redactor().text(f"鍵は{shape}です") == f"鍵は{MASK}です"


def test_a_bearer_header_keeps_its_name_only() -> None:
    assert Redactor().text("Authorization: Bearer abcdefghijklmnop") == (
        f"Authorization: Bearer {MASK}"
    )


def test_ordinary_text_is_left_alone() -> None:
    text = "def sk_test(): return 'パスワード' # task-list, AKI"
    assert Redactor(["hunter2hunter2"]).text(text) == text


def test_secret_variables_are_known_by_name() -> None:
    environment = {"MY_API_KEY": "abcdefgh", "PATH": "/usr/bin:/bin", "DB_PASSWORD": "p" * 9}
    assert sorted(secret_values(environment)) == ["abcdefgh", "p" * 9]


def test_a_huge_string_is_cut_with_a_mark() -> None:
    cut = Redactor().text("x" * (LONGEST + 5))
    assert cut.endswith("[5 more characters]")


def test_unknown_objects_become_text() -> None:
    json.dumps(Redactor().value({"path": object(), "when": {1, 2}}))


SHAPES = [
    "sk-proj-abcdefghijklmnop1234",
    "pk-abcdefghijklmnop1234",
    "rk-abcdefghijklmnop1234",
    *(f"gh{kind}_abcdefghijklmnopqrstuvwxyz" for kind in "pousr"),
    "github_pat_abcdefghijklmnopqrstuvwxyz",
    "glpat-abcdefghijklmnop1234",
    "xoxb-1234567890-abcdefghij",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIAABCDEFGHIJKLMNOP",
    "AIza" + "b" * 35,
    "npm_" + "c" * 36,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefg",
    "Bearer abcdefghijklmnop",
    "bearer abcdefghijklmnop",
    "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
]


@pytest.mark.case(135)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_slips_through_a_line(shape: str) -> None:
    line = Redactor().line({"a": [{"b": f"x {shape} y"}]})
    assert MASK in line
    assert json.loads(line) == Redactor().value({"a": [{"b": f"x {shape} y"}]})


@pytest.mark.case(135)
@given(SECRET, st.text(max_size=30))
def test_a_line_says_what_its_value_says(secret: str, around: str) -> None:
    redactor = Redactor([secret])
    for text in (around, around + secret, secret + around):
        value = {"a": [text, {"k" + text: 1}], "n": None}
        assert json.loads(redactor.line(value)) == redactor.value(value)


@pytest.mark.case(135)
@pytest.mark.parametrize(
    "name", ["DB_PASS", "SMTP_PWD", "GPG_PASSPHRASE", "NPM_AUTH", "PGPASSWORD"]
)
def test_a_password_is_a_secret_by_each_of_its_names(name: str) -> None:
    assert secret_values({name: "hunter2hunter2", "PWD": "/home/me/project"}) == ["hunter2hunter2"]


@pytest.mark.parametrize("text", ["eyJ-" * 60_000, "eyJa." * 50_000, "-----BEGIN A" * 20_000])
def test_no_text_takes_the_square_of_its_length(text: str) -> None:
    """X8: sixty kilobytes took a second, and the event loop waited."""
    assert Redactor().line({"text": text}) == json.dumps({"text": text}, separators=(",", ":"))


def test_a_token_is_masked_wherever_its_word_begins() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-DEF_1"
    for before in ("", "x ", "jwt-", "id_", "a.", "鍵"):
        assert token not in Redactor().masked(before + token)


def test_a_secret_across_the_cut_is_masked() -> None:
    text = "a" * (LONGEST - 10) + " sk-" + "b" * 40 + "c" * 1000
    assert "sk-" not in Redactor().text(text)
    assert Redactor().text("a" * (LONGEST + MARGIN + 5)).endswith("more characters]")
