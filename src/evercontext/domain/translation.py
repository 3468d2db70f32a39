"""The catalogue of texts in other languages, which terminal and console share.

The English text is the key, so that code reads as the screen does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache


@cache
def sections(language: str) -> dict[str, dict[str, str]]:
    """Return the catalogue's sections: texts of both, of settings by name, of the terminal."""
    from importlib.resources import files  # costs more than the start of a command in English

    path = files("evercontext.domain").joinpath("translations", f"{language}.json")
    content: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8"))
    return content


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return every text by its English form; a terminal's own wording wins over the console's."""
    parts = sections(language)
    return {**parts["console"], **parts["terminal"]}
