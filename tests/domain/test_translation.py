from __future__ import annotations

import re

import pytest

from evercontext.domain.translation import catalogue, sections

PLACE = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize("section", ["console", "terminal", "composed"])
def test_every_translation_has_the_places_of_its_text(section: str) -> None:
    """A10: a place that is missing would lose a number or a name."""
    for text, shown in sections("ja")[section].items():
        assert set(PLACE.findall(shown)) <= set(PLACE.findall(text)), text
        assert shown.strip()


def test_terminal_and_console_read_one_catalogue() -> None:
    """A10."""
    assert catalogue("ja")["Approvals"] == sections("ja")["console"]["Approvals"]
