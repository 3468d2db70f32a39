"""Show the answer of a search as JSON, the same for the command, REST and MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evercontext.index.code_search import Answer


def as_data(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON shows it (E19, and more)."""
    return {
        "chunks": [
            {
                "path": hit.path,
                "span": hit.span,
                "text": hit.text,
                "score": hit.score,
                "start_line": hit.start_line,
                "end_line": hit.end_line,
                "symbol": hit.symbol,
                "reasons": list(hit.reasons),
                **({"signals": dict(hit.signals)} if hit.signals else {}),
                **({"shortened": True} if hit.is_shortened else {}),
            }
            for hit in answer.hits
        ],
        "stale": answer.stale,
        **(
            {"coverage": {"indexed": answer.indexed, "files": answer.files}}
            if answer.coverage
            else {}
        ),
        **({"budget": answer.budget, "left_out": answer.left_out} if answer.budget else {}),
        **({"note": answer.note} if answer.note else {}),
    }


def unfitted(answer: Answer) -> str:
    """What a budget left out of an answer, as a sentence; empty where it left out nothing."""
    short = sum(hit.is_shortened for hit in answer.hits)
    parts = [f"{answer.left_out} more did not fit"] if answer.left_out else []
    parts += [f"{short} {'is' if short == 1 else 'are'} shown by signature alone"] if short else []
    return f"Within {answer.budget:,} tokens: {', '.join(parts)}." if parts else ""


def incomplete(answer: Answer) -> str:
    """What an answer lacks, as a sentence; empty where it lacks nothing."""
    if answer.coverage:
        return (
            f" The index holds {answer.coverage} so far; the others were searched by file name "
            "and plain text. Ask again for a better answer."
        )
    return " The index does not know the newest changes yet." if answer.stale else ""
