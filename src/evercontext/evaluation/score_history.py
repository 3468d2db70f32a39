"""Store a row for each evaluation, and the text of every version."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evercontext.evaluation.document_versions import Versions
from evercontext.evaluation.rubric import LOCAL, Evaluation, Rubric, beyond_form
from evercontext.events.redaction import Clean, cleaned, unchanged
from evercontext.storage.store import Row, Store

MOST = 1000
_LONGEST_TITLE = 80
_MARKS = " \t\r\n#=-*\ufeff"
_ADD = """
    INSERT INTO evaluations (id, trace_id, door, project, document, title, round, digest, judge,
        score, target, rubric_scores, weights, suggestions, milliseconds, at, user_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A document of a project is shared in it, and so are its scores; a text of none is its user's.
_VISIBLE = "SELECT * FROM evaluations WHERE (project <> '' OR user_id IN ('', ?))"
_OF_PROJECT = f"{_VISIBLE} AND project = ? ORDER BY id DESC LIMIT ?"
_OF_DOCUMENT = f"{_VISIBLE} AND document = ? ORDER BY id DESC LIMIT ?"
_OF_TRACE = f"{_VISIBLE} AND trace_id = ? ORDER BY id LIMIT ?"
_RECENT = f"{_VISIBLE} ORDER BY id DESC LIMIT ?"
_VISIBLE_BY_ID = f"{_VISIBLE} AND id = ?"


@dataclass(frozen=True, slots=True)
class Occasion:
    """Who had a document judged, and which one. Without a path only its title is known."""

    door: str = "tool"
    """``evaluate``, ``improve`` or ``tool``."""
    document: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """One evaluation as it is kept."""

    id: str
    trace_id: str
    door: str
    project: str
    document: str
    title: str
    round: int | None
    """The round of ``improve``; 0 is the original. ``None`` outside of it."""
    digest: str
    judge: str
    score: float
    target: float
    rubric_scores: Mapping[str, float]
    weights: Mapping[str, float]
    suggestions: tuple[str, ...]
    milliseconds: int
    at: str

    @property
    def passed(self) -> bool:
        """Whether the score was enough."""
        weighed = (name for name, weight in self.weights.items() if weight)
        judged = any(name not in self.not_judged for name in weighed)
        return self.score >= self.target and judged

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Criteria that its judge could say nothing about."""
        return beyond_form(self.rubric_scores) if self.judge == LOCAL else ()

    @property
    def name(self) -> str:
        """What people know the document by."""
        return self.document or self.title or self.digest[:12]

    def to_json(self) -> dict[str, Any]:
        """The record as programs read it."""
        return {
            **asdict(self),
            "suggestions": list(self.suggestions),
            "not_judged": list(self.not_judged),
            "pass": self.passed,
        }


class EvaluationHistory:
    """The ``evaluations`` table as one user sees it, and the versions under the home folder."""

    def __init__(
        self, store: Store, home: Path, clean: Clean = unchanged, user: str | None = None
    ) -> None:
        self._store, self._clean, self._user = store, clean, user or ""
        self.versions = Versions(home)

    async def add(
        self,
        content: str,
        evaluation: Evaluation,
        rubric: Rubric,
        target: float,
        *,
        occasion: Occasion,
        trace_id: str,
    ) -> str:
        """Keep one evaluation and return its id; the text itself is not kept here."""
        id, metadata = _new_id(), evaluation.metadata
        suggestions = [str(suggestion) for suggestion in evaluation.suggestions]
        row = (
            id,
            trace_id,
            occasion.door,
            self._storable(occasion.project),
            self._storable(occasion.document),
            title_of(content, self._storable),
            metadata.get("iteration"),
            hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
            self._storable(str(metadata.get("model_used", ""))),
            evaluation.score,
            target,
            _json(cleaned(dict(evaluation.rubric_scores), self._storable)),
            _json(cleaned(dict(rubric.weights), self._storable)),
            _json(cleaned(suggestions, self._storable)),
            int(metadata.get("evaluation_time", 0)),
            f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
            self._user,
        )
        await self._store.execute(_ADD, row)
        return id

    async def recent(self, project: str | None = None, limit: int = 50) -> list[EvaluationRecord]:
        """The newest evaluations first, of one project or of all."""
        most = min(limit, MOST)
        if project is None:
            rows = await self._store.fetch_all(_RECENT, (self._user, most))
        else:
            parameters = (self._user, self._storable(project), most)
            rows = await self._store.fetch_all(_OF_PROJECT, parameters)
        return [_record(row) for row in rows]

    async def of_document(self, document: str, limit: int = 200) -> list[EvaluationRecord]:
        """One document's evaluations, the oldest first, as a chart wants them."""
        parameters = (self._user, self._storable(document), min(limit, MOST))
        rows = await self._store.fetch_all(_OF_DOCUMENT, parameters)
        return [_record(row) for row in reversed(rows)]

    async def get(self, id: str) -> EvaluationRecord | None:
        """One evaluation."""
        row = await self._store.fetch_one(_VISIBLE_BY_ID, (self._user, id))
        return _record(row) if row else None

    async def of_trace(self, trace_id: str) -> list[EvaluationRecord]:
        """Every round of one ``improve``, or the evaluations of one call, in their order."""
        rows = await self._store.fetch_all(_OF_TRACE, (self._user, trace_id, MOST))
        return [_record(row) for row in rows]

    def text_of(self, record: EvaluationRecord) -> str | None:
        """The document as it was judged, if ``improve`` kept it."""
        if record.round is None:
            return None
        data = self.versions.read(record.trace_id, record.round)
        return None if data is None else data.decode("utf-8", "replace")

    def _storable(self, text: str) -> str:
        # No database takes half a character pair, and not every one takes NUL.
        encodable = self._clean(text).encode("utf-8", "replace").decode("utf-8")
        return encodable.replace("\0", "\ufffd")


def title_of(content: str, clean: Clean = unchanged) -> str:
    """A document's first words: what to call it where it has no name."""
    lines = io.StringIO(content)
    first = next((line for line in lines if line.strip(_MARKS)), "")
    # Cut last: half a secret would not be known for one.
    return " ".join(clean(first).strip(_MARKS).split())[:_LONGEST_TITLE]


def _new_id() -> str:
    # Time first, so that ids sort by age; random last, so that none collide.
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _record(row: Row) -> EvaluationRecord:
    return EvaluationRecord(
        id=row["id"],
        trace_id=row["trace_id"],
        door=row["door"],
        project=row["project"],
        document=row["document"],
        title=row["title"],
        round=row["round"],
        digest=row["digest"],
        judge=row["judge"],
        score=row["score"],
        target=row["target"],
        rubric_scores=json.loads(row["rubric_scores"]),
        weights=json.loads(row["weights"]),
        suggestions=tuple(json.loads(row["suggestions"])),
        milliseconds=row["milliseconds"],
        at=row["at"],
    )
