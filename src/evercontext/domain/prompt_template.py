"""Fill prompt templates with facts in a single pass."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


def fill(template: str, facts: Mapping[str, str]) -> str:
    """Put facts into their ``{{places}}``; a place without a fact stays as it is.

    Facts hold documents, file names and other people's words. One pass means that what they bring
    along is never looked at again: braces inside a fact are only braces.
    """
    return _PLACE.sub(lambda place: facts.get(place[1], place[0]), template)
