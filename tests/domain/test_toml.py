"""TOML that strangers wrote: no small text keeps the reader busy."""

from __future__ import annotations

import pytest

from evercontext.domain.toml import MOST_DOTS, read_toml


def test_ordinary_text_is_read() -> None:
    listed = ", ".join(f'".x{number}"' for number in range(MOST_DOTS))
    assert read_toml(f"a.b.c = 1\nlisted = [{listed}]")["a"] == {"b": {"c": 1}}


@pytest.mark.parametrize(
    "key", ["a" + ".a" * 20_000, '"\\""' + '."\\""' * 20_000, "a" + " . a" * 20_000]
)
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_a_key_of_very_many_parts_is_refused_unread(key: str, form: str) -> None:
    with pytest.raises(ValueError, match="dots"):
        read_toml(form.format(key))


def test_depth_is_an_error_and_no_crash() -> None:
    with pytest.raises(ValueError):
        read_toml("a = " + "[" * 50_000 + "]" * 50_000)
