"""Write answers about structure as lines of text, for models and terminals."""

from __future__ import annotations

from collections.abc import Sequence

from evercontext.index.structure.questions import Occurrence, StructureAnswer
from evercontext.index.structure.source import Symbol

_MOST_OUTSIDE = 20
_MOST_DEFINITIONS = 5
_SHOWN = 160


def answer_text(answer: StructureAnswer) -> str:
    """Return an answer as text: a head line, then one line for each place."""
    lines = [_head(answer)]
    lines += [place_text(place) for place in answer.places]
    if answer.total > len(answer.places):
        lines.append(f"… {answer.total - len(answer.places)} more")
    if answer.outside:
        more = ", …" if len(answer.outside) > _MOST_OUTSIDE else ""
        lines.append("not resolved: " + ", ".join(answer.outside[:_MOST_OUTSIDE]) + more)
    if answer.note:
        lines.append(f"({answer.note})")
    return "\n".join(lines)


def _head(answer: StructureAnswer) -> str:
    if answer.question == "definition":
        return f"{answer.name}: {answer.total or 'no'} definition{'s' * (answer.total != 1)}"
    where = ", ".join(f"{s.path}:{s.line}" for s in answer.definitions[:_MOST_DEFINITIONS])
    more = ", …" if len(answer.definitions) > _MOST_DEFINITIONS else ""
    of = f" ({where}{more})" if where else ""
    return f"{answer.question} of {answer.name}{of}: {answer.total}"


def place_text(place: Occurrence) -> str:
    """Return one place: where, how sure, around what, and the line itself."""
    if place.kind == "definition":
        return f"{place.path}:{place.line} {place.symbol} | {place.text[:_SHOWN]}"
    inside = f" in {place.symbol}" if place.symbol else ""
    return f"{place.path}:{place.line} [{place.certainty}]{inside} | {place.text[:_SHOWN]}"


def outline_text(symbols: Sequence[Symbol]) -> str:
    """Return an outline: lines, and signatures indented by their class."""
    if not symbols:
        return "Nothing is defined here."
    return "\n".join(
        f"{symbol.line}-{symbol.end_line}:{'  ' * (symbol.qualified_name.count('.') + 1)}"
        f"{symbol.signature[:_SHOWN]}"
        for symbol in symbols
    )
