"""The terminal speaks the language of its locale (A10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evercontext.cli import messages
from evercontext.cli.messages import language, translate


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    language.cache_clear()
    yield
    language.cache_clear()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_locale_decides(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    """A10: in the order that POSIX gives the variables."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language() == expected


def test_places_are_filled_in_and_an_unknown_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10."""
    monkeypatch.setattr(messages, "catalogue", lambda name: {"{n} files": "ファイル {n} 件"})
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert translate("{n} files", n=2) == "ファイル 2 件"
    assert translate("{n} unknown", n=2) == "2 unknown"
