"""Fill the evaluation prompt in a single pass."""

from __future__ import annotations

import json
import stat
from importlib.resources import files
from pathlib import Path

from evercontext.domain.prompt_template import fill
from evercontext.evaluation.rubric import Rubric

LARGEST = 262_144


class Template:
    """A prompt with ``{{…}}`` placeholders; what is not a placeholder stays as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def fill(self, content: str, rubric: Rubric) -> str:
        """Put weights and document in. The document is data: its own braces are never filled."""
        values = {f"{name}_weight": f"{weight:g}" for name, weight in rubric.weights.items()}
        values["document_content"] = content
        values["criteria"] = json.dumps(dict(rubric.weights), ensure_ascii=False)
        return fill(self._text, values)


def packaged() -> Template:
    """The template that ships with the product."""
    place = files("evercontext.evaluation") / "prompts" / "evaluation-prompt.txt"
    return Template(place.read_text(encoding="utf-8"))


def load(path: Path | None) -> tuple[Template, str | None]:
    """Read a template of the user's own once; if it cannot be used, the packaged one and why."""
    if path is None:
        return packaged(), None
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return packaged(), f"{path} is not a regular file: the packaged template is used"
        if status.st_size > LARGEST:
            return packaged(), f"{path} is larger than {LARGEST} bytes: the packaged one is used"
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        return packaged(), f"{path} cannot be read ({problem}): the packaged template is used"
    if "{{document_content}}" not in text:
        return packaged(), f"{path} has no {{{{document_content}}}}: the packaged one is used"
    return Template(text), None
