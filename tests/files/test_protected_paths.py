from __future__ import annotations

import pytest

from evercontext.files.generated_directories import ENVIRONMENTS
from evercontext.files.protected_paths import (
    PLACES,
    asking,
    closed,
    is_obeyed,
    is_secret,
)


def test_every_place_has_a_reason_and_names_nothing_twice() -> None:
    names = [name for place in PLACES for name in place.patterns]
    assert all(place.reason for place in PLACES)
    assert len(names) == len(set(names))


@pytest.mark.case(2)
@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git.", ".git ", ".ＧＩＴ", ".g\u200cit", ".gıt".replace("ı", "I")]
)
def test_spellings_that_mean_the_same_elsewhere(name: str) -> None:
    assert closed(name) is not None


def test_a_place_by_its_folder() -> None:
    assert asking(".yarn", "releases")
    assert asking("src", "releases") is None


def test_what_is_put_away_and_what_is_hidden() -> None:
    assert is_obeyed("", ".vscode")
    assert is_obeyed("", ".npmrc")
    assert is_secret(".npmrc")
    assert not is_obeyed("", "a.pem")
    assert not is_obeyed("", ".env")
    assert all(asking("", name) and not is_obeyed("", name) for name in ENVIRONMENTS)
