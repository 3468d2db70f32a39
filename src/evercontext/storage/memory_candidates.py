"""Questions about memories, answered by PostgreSQL: statistics, frequencies and candidates.

A question reads its own words' postings and the vectors of its own scopes, never those of others,
so that its cost depends on what its asker may see alone. Nothing is kept here between questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from evercontext.storage.store import READ_SECONDS, Queries, Store

TERM_OFFSET = 2**31
"""A term's 32-bit number is stored less this, to fit a signed column."""
CHOSEN = 400
"""MemoryCandidates by words, and as many by meaning."""
MOST_POSTINGS = 20_000
"""Memories of one term that are looked at, the newest: a term of more says little."""
EXACT_VECTORS = 60_000
"""Up to so many memories of a scope all vectors are compared; more have an index of their own."""
_SAMPLED = 300
_SAMPLE = 64
"""One memory in so many has a place in the indexes of samples."""
_SCALARS = (
    "own_sum",
    "own_squares",
    "context_sum",
    "context_squares",
    "session_sum",
    "session_squares",
    "meaning_mean",
    "meaning_spread",
    "most",
)
_DOUBLES = (
    "own",
    "context",
    "after",
    "session",
    "cosine",
    "cosine_before",
    "cosine_after",
    "length",
    "importance",
    "asks",
    "answers",
    "opening",
    "speaker",
)


@runtime_checkable
class SearchesMemories(Protocol):
    """A store whose database may choose the memories that bear on a question."""

    @property
    def has_memory_search(self) -> bool:
        """Whether it can do so now."""
        ...

    async def index_vectors(self, scope: int, encoder: str, dimensions: int) -> bool:
        """Build the vector index of a large scope; ``False`` if another process does."""
        ...


def memory_search_of(store: Store) -> SearchesMemories | None:
    """Return what a store's database can do about questions, or nothing."""
    return store if isinstance(store, SearchesMemories) and store.has_memory_search else None


@dataclass(frozen=True, slots=True)
class ScopeStatistics:
    """What an asker may see, counted."""

    scopes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Memories of each of ``scopes``."""
    terms: int
    sessions: int
    session_terms: int
    speakers: tuple[str, ...]
    stale: bool
    """Some memories have vectors of another encoder."""

    @property
    def memories(self) -> int:
        """How many there are."""
        return sum(self.sizes)

    @property
    def average_length(self) -> float:
        """Terms of a memory on average."""
        return max(1.0, self.terms / max(1, self.memories))

    @property
    def average_session(self) -> float:
        """Terms of a session on average."""
        return max(1.0, self.session_terms / max(1, self.sessions))


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """What the candidates are to be near to."""

    terms: Mapping[int, float]
    """Weights of terms by their 32-bit numbers."""
    vector: Sequence[float] | None
    encoder: str | None
    speakers: Sequence[str]
    """Speakers whom the question names."""
    now: str
    working: bool | None = None
    """Only working memories, or only others."""
    spans: Sequence[tuple[str, str]] = ()
    """Stretches of time, from one stamp up to another."""
    months: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class MemoryCandidates:
    """The candidates' numbers: packed columns, and totals over all that the asker may see."""

    numbers: bytes
    """Big-endian 64-bit integers."""
    columns: Mapping[str, bytes]
    """Big-endian 64-bit floats, one per candidate."""
    created_at: list[str]
    totals: Mapping[str, float]


async def read_statistics(
    queries: Queries,
    owners: Sequence[tuple[str, str]],
    encoder: str | None,
    seconds: float = READ_SECONDS,
) -> ScopeStatistics:
    """Return the statistics of the memories of ``owners``: pairs of project and user."""
    projects, users = [p for p, _ in owners], [u for _, u in owners]
    row = await queries.fetch_one(_STATISTICS, (projects, users, encoder), seconds=seconds)
    assert row is not None
    return ScopeStatistics(
        scopes=tuple(row["scopes"] or ()),
        sizes=tuple(row["sizes"] or ()),
        terms=int(row["terms"] or 0),
        sessions=int(row["sessions"] or 0),
        session_terms=int(row["session_terms"] or 0),
        speakers=tuple(row["speakers"] or ()),
        stale=bool(encoder is not None and row["stale"]),
    )


async def read_scopes(
    queries: Queries, owners: Sequence[tuple[str, str]], seconds: float = READ_SECONDS
) -> tuple[int, ...]:
    """Return the numbers of the scopes of ``owners`` that have had memories."""
    values = ([p for p, _ in owners], [u for _, u in owners])
    rows = await queries.fetch_all(_SCOPES, values, seconds=seconds)
    return tuple(row["id"] for row in rows)


async def read_frequencies(
    queries: Queries, scopes: Sequence[int], terms: Sequence[int], seconds: float = READ_SECONDS
) -> list[int]:
    """Return how many memories hold each term, counted up to a thousand."""
    signed = [term - TERM_OFFSET for term in terms]
    rows = await queries.fetch_all(_FREQUENCIES, (signed, list(scopes)), seconds=seconds)
    counts = {row["term"]: int(row["memories"]) for row in rows}
    return [counts.get(term, 0) for term in signed]


async def read_candidates(
    queries: Queries,
    statistics: ScopeStatistics,
    query: CandidateQuery,
    seconds: float = READ_SECONDS,
) -> MemoryCandidates:
    """Return the memories nearest to a question by words, by meaning and by time."""
    sql = _candidates_sql(statistics, query.encoder, query.vector)
    row = await queries.fetch_one(sql, _values(statistics, query), seconds=seconds)
    assert row is not None
    return MemoryCandidates(
        numbers=row["numbers"] or b"",
        columns={name: row[name] or b"" for name in _DOUBLES},
        created_at=(row["created_at"] or "").split("\n") if row["numbers"] else [],
        totals={name: float(row[name] or 0.0) for name in _SCALARS},
    )


def _values(statistics: ScopeStatistics, query: CandidateQuery) -> tuple[Any, ...]:
    vector = "[" + ",".join(f"{value:.6g}" for value in query.vector or ()) + "]"
    return (
        [term - TERM_OFFSET for term in query.terms],
        list(query.terms.values()),
        list(statistics.scopes),
        float(statistics.memories),
        statistics.average_length,
        float(statistics.sessions),
        statistics.average_session,
        vector if query.vector is not None else None,
        query.encoder,
        query.now,
        query.working,
        list(query.speakers),
        [start for start, _ in query.spans],
        [end for _, end in query.spans],
        list(query.months),
    )


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


_NEAR = "number, embedding, expires_at, working"


def _nearest(scope: int, size: int, encoder: str, dimensions: int) -> str:
    """Return the part of the statement that finds what is near in one scope."""
    kind = f"halfvec({int(dimensions)})"
    alike = f"scope = {int(scope)} AND encoder = {_quoted(encoder)}"
    if size <= EXACT_VECTORS:
        return f"SELECT {_NEAR}, true AS sampled FROM memory_documents WHERE {alike}"  # noqa: S608 - numbers and a quoted name
    return (
        f"(SELECT {_NEAR}, number % {_SAMPLE} = 0 AS sampled FROM memory_documents"  # noqa: S608 - numbers and a quoted name
        f" WHERE {alike} ORDER BY embedding::{kind} <=>"
        f" (SELECT vector FROM question)::{kind} LIMIT {2 * CHOSEN})"
        f" UNION SELECT {_NEAR}, true FROM memory_documents"
        f" WHERE {alike} AND number % {_SAMPLE} = 0"
    )


def _candidates_sql(
    statistics: ScopeStatistics, encoder: str | None, vector: Sequence[float] | None
) -> str:
    near = f"SELECT {_NEAR}, true AS sampled FROM memory_documents WHERE false"  # noqa: S608 - fixed words
    if encoder is not None and vector is not None:
        pairs = zip(statistics.scopes, statistics.sizes, strict=True)
        parts = (_nearest(scope, size, encoder, len(vector)) for scope, size in pairs)
        near = " UNION ALL ".join(f"({part})" for part in parts)
    scopes = f"'{{{','.join(str(int(scope)) for scope in statistics.scopes)}}}'::integer[]"
    return _CANDIDATES.replace("{near}", near).replace("{scopes}", scopes)


_SCOPES = """
    SELECT s.id FROM unnest(?::text[], ?::text[]) AS o (project, user_id)
    JOIN memory_scopes AS s USING (project, user_id) ORDER BY s.id
"""
_STATISTICS = f"""
    WITH owned AS ({_SCOPES}), counted AS (
        SELECT owned.id, d.memories, d.terms, t.sessions, t.terms AS session_terms, n.speakers,
            d.stale
        FROM owned CROSS JOIN LATERAL (
            SELECT count(*) AS memories, sum(length) AS terms,
                bool_or(encoder IS DISTINCT FROM ?::text) AS stale
            FROM memory_documents WHERE scope = owned.id
        ) AS d CROSS JOIN LATERAL (
            SELECT count(*) AS sessions, sum(length) AS terms
            FROM memory_sessions WHERE scope = owned.id AND length > 0
        ) AS t CROSS JOIN LATERAL (
            WITH RECURSIVE named AS (
                (SELECT speaker, 1 AS place FROM memory_documents
                 WHERE scope = owned.id AND speaker IS NOT NULL ORDER BY speaker LIMIT 1)
                UNION ALL
                SELECT (SELECT speaker FROM memory_documents WHERE scope = owned.id
                        AND speaker > named.speaker ORDER BY speaker LIMIT 1), place + 1
                FROM named WHERE named.speaker IS NOT NULL AND place <= 10000
            )
            SELECT array_agg(speaker) AS speakers FROM named WHERE speaker IS NOT NULL
        ) AS n
    )
    SELECT array_agg(id ORDER BY id) AS scopes, array_agg(memories ORDER BY id) AS sizes,
        sum(terms) AS terms, sum(sessions) AS sessions, sum(session_terms) AS session_terms,
        bool_or(stale) AS stale,
        (SELECT array_agg(DISTINCT speaker) FROM counted, unnest(counted.speakers) AS speaker)
            AS speakers
    FROM counted
"""  # noqa: S608 - made of fixed words
_FREQUENCIES = """
    SELECT asked.term, sum(held.memories) AS memories
    FROM unnest(?::integer[]) AS asked (term) CROSS JOIN unnest(?::integer[]) AS owned (scope)
    CROSS JOIN LATERAL (
        SELECT count(*) AS memories FROM (
            SELECT 1 FROM memory_postings AS p
            WHERE p.scope = owned.scope AND p.term = asked.term LIMIT 1000) AS few
    ) AS held GROUP BY asked.term
"""
# BM25 as in retrieval/bm25f.py, with the constants of memory/ranking.py: a share of a term's worth
# for its count in a text of a length. Tests compare every number with those of the process.
_CANDIDATES = """
WITH question AS MATERIALIZED (
    SELECT ?::integer[] AS terms, ?::float8[] AS weights, ?::integer[] AS scopes,
        ?::float8 AS memories, ?::float8 AS average, ?::float8 AS sessions,
        ?::float8 AS average_session, ?::halfvec AS vector, ?::text AS encoder, ?::text AS now,
        ?::integer::boolean AS working, ?::text[] AS speakers, ?::text[] AS starts,
        ?::text[] AS ends, ?::integer[] AS months
), asked AS MATERIALIZED (
    SELECT t.term, t.weight FROM question AS q, unnest(q.terms, q.weights) AS t (term, weight)
), matched AS MATERIALIZED (
    SELECT a.term, a.weight, p.number, p.count::float8 AS count, p.length, p.session
    FROM asked AS a CROSS JOIN (SELECT unnest(scopes) AS scope FROM question) AS s
    CROSS JOIN LATERAL (
        SELECT number, count, length, session FROM memory_postings AS p
        WHERE p.scope = s.scope AND p.term = a.term ORDER BY p.number DESC LIMIT {postings}
    ) AS p
), held AS (
    SELECT term, count(*) AS memories FROM matched GROUP BY term
), rarity AS MATERIALIZED (
    SELECT a.term, a.weight * ln(1 + greatest(0, q.memories - h.memories + 0.5)
        / (h.memories + 0.5)) AS worth
    FROM question AS q, asked AS a CROSS JOIN LATERAL (
        SELECT CASE WHEN coalesce(held.memories, 0) < {postings}
            THEN coalesce(held.memories, 0)::float8
            ELSE {sample} * (SELECT count(*) FROM memory_postings AS p, question AS q
                WHERE p.scope = ANY ({scopes}) AND p.term = a.term AND p.number % {sample} = 0)
            END AS memories
        FROM (SELECT 1) AS always LEFT JOIN held ON held.term = a.term
    ) AS h
), own AS MATERIALIZED (
    SELECT m.number, sum(r.worth * 2.2 * m.count
        / (m.count + 1.2 * (0.25 + 0.75 * m.length / q.average))) AS score
    FROM matched AS m JOIN rarity AS r USING (term), question AS q GROUP BY m.number
), session_terms AS (
    SELECT session, term, max(weight) AS weight, sum(count) AS count
    FROM matched WHERE session IS NOT NULL GROUP BY session, term
), session_rarity AS (
    SELECT s.term, max(s.weight) * ln(1 + greatest(0, max(q.sessions) - count(*) + 0.5)
        / (count(*) + 0.5)) AS worth
    FROM session_terms AS s, question AS q GROUP BY s.term
), session_scores AS MATERIALIZED (
    SELECT t.session, sum(r.worth * 2.2 * t.count
        / (t.count + 1.2 * (0.25 + 0.75 * l.length / q.average_session))) AS score
    FROM session_terms AS t JOIN session_rarity AS r USING (term) JOIN (
        SELECT session, sum(length) AS length FROM memory_sessions, question AS q
        WHERE scope = ANY ({scopes}) GROUP BY session
    ) AS l USING (session), question AS q GROUP BY t.session
), near AS MATERIALIZED (
    SELECT n.number, n.sampled, 1 - (n.embedding <=> q.vector) AS cosine,
        (n.expires_at IS NULL OR n.expires_at > q.now)
            AND (q.working IS NULL OR n.working = q.working) AS usable
    FROM ({near}) AS n, question AS q
    WHERE n.embedding IS NOT NULL AND vector_dims(n.embedding) = vector_dims(q.vector)
), by_words AS (
    SELECT own.number FROM own, question AS q WHERE EXISTS (
        SELECT 1 FROM memory_documents AS d WHERE d.number = own.number
        AND (d.expires_at IS NULL OR d.expires_at > q.now)
        AND (q.working IS NULL OR d.working = q.working))
    ORDER BY own.score DESC, own.number LIMIT {chosen}
), by_meaning AS (
    SELECT near.number FROM near WHERE near.usable
    ORDER BY near.cosine DESC, near.number LIMIT {chosen}
), by_time AS (
    SELECT d.number FROM memory_documents AS d, question AS q
    WHERE d.scope = ANY ({scopes}) AND (cardinality(q.starts) > 0 OR cardinality(q.months) > 0)
    AND (EXISTS (SELECT 1 FROM unnest(q.starts, q.ends) AS s (start, stop)
            WHERE d.created_at >= s.start AND d.created_at < s.stop)
        OR substr(d.created_at, 6, 2) = ANY (
            SELECT lpad(((m + e + 11) % 12 + 1)::text, 2, '0')
            FROM unnest(q.months) AS m, generate_series(-1, 1) AS e))
    ORDER BY d.number DESC LIMIT {chosen}
), newest AS (
    SELECT d.number FROM memory_documents AS d, question AS q
    WHERE d.scope = ANY ({scopes}) AND NOT EXISTS (SELECT 1 FROM own)
    AND NOT EXISTS (SELECT 1 FROM near)
    ORDER BY d.number DESC LIMIT {chosen}
), following AS (
    SELECT f.number FROM by_words JOIN memory_documents AS d USING (number)
    CROSS JOIN question AS q CROSS JOIN LATERAL (
        SELECT number FROM memory_documents AS n
        WHERE n.session = d.session AND n.number > d.number AND n.scope = ANY ({scopes})
        ORDER BY n.number LIMIT 1) AS f
), wanted AS (
    SELECT number FROM by_words UNION SELECT number FROM by_meaning
    UNION SELECT number FROM by_time UNION SELECT number FROM newest
    UNION SELECT number FROM following
), sampled AS MATERIALIZED (
    SELECT own.number FROM own WHERE own.number %
        greatest(1, (SELECT count(*) FROM own) / {sampled}) = 0
), sample_following AS (
    SELECT f.number FROM sampled JOIN memory_documents AS d USING (number)
    CROSS JOIN question AS q CROSS JOIN LATERAL (
        SELECT number FROM memory_documents AS n
        WHERE n.session = d.session AND n.number > d.number AND n.scope = ANY ({scopes})
        ORDER BY n.number LIMIT 1) AS f
), looked_at AS (
    SELECT number FROM wanted UNION SELECT number FROM sampled
    UNION SELECT number FROM sample_following
), documents AS MATERIALIZED (
    SELECT d.number, d.session, d.length, d.importance, d.asks, d.speaker, d.created_at,
        d.number IN (SELECT number FROM wanted)
            AND (d.expires_at IS NULL OR d.expires_at > q.now)
            AND (q.working IS NULL OR d.working = q.working) AS usable,
        b.number AS before, b.length AS before_length, b.asks AS before_asks, f.number AS after,
        CASE WHEN d.encoder = q.encoder AND vector_dims(d.embedding) = vector_dims(q.vector)
            THEN 1 - (d.embedding <=> q.vector) END AS cosine,
        CASE WHEN b.encoder = q.encoder AND vector_dims(b.embedding) = vector_dims(q.vector)
            THEN 1 - (b.embedding <=> q.vector) END AS cosine_before,
        CASE WHEN f.encoder = q.encoder AND vector_dims(f.embedding) = vector_dims(q.vector)
            THEN 1 - (f.embedding <=> q.vector) END AS cosine_after
    FROM looked_at JOIN memory_documents AS d USING (number) CROSS JOIN question AS q
    LEFT JOIN LATERAL (
        SELECT number, length, asks, encoder, embedding FROM memory_documents AS n
        WHERE n.session = d.session AND n.number < d.number AND n.scope = ANY ({scopes})
        ORDER BY n.number DESC LIMIT 1) AS b ON true
    LEFT JOIN LATERAL (
        SELECT number, encoder, embedding FROM memory_documents AS n
        WHERE n.session = d.session AND n.number > d.number AND n.scope = ANY ({scopes})
        ORDER BY n.number LIMIT 1) AS f ON true
), contexts AS MATERIALIZED (
    SELECT t.number, sum(r.worth * 2.2 * t.count
        / (t.count + 1.2 * (0.25 + 0.75 * t.length / (2 * q.average)))) AS score
    FROM (
        SELECT p.number, p.length, m.term, sum(m.count) AS count FROM (
            SELECT number, number AS member, length + coalesce(before_length, 0) AS length
            FROM documents
            UNION ALL
            SELECT number, before, length + before_length FROM documents WHERE before IS NOT NULL
        ) AS p JOIN matched AS m ON m.number = p.member GROUP BY p.number, p.length, m.term
    ) AS t JOIN rarity AS r USING (term), question AS q GROUP BY t.number
), context_sample AS (
    SELECT c.score FROM documents AS d JOIN contexts AS c USING (number)
    WHERE d.number IN (SELECT number FROM sampled) OR (
        d.before IN (SELECT number FROM sampled) AND d.number NOT IN (SELECT number FROM own))
), rows AS MATERIALIZED (
    SELECT d.*, coalesce(o.score, 0) AS own, coalesce(c.score, 0) AS context,
        coalesce(n.score, 0) AS own_after, coalesce(s.score, 0) AS session_score
    FROM documents AS d LEFT JOIN own AS o USING (number) LEFT JOIN contexts AS c USING (number)
        LEFT JOIN own AS n ON n.number = d.after
        LEFT JOIN session_scores AS s ON s.session = d.session
    WHERE d.usable
)
SELECT
    string_agg(int8send(number), ''::bytea ORDER BY number) AS numbers,
    string_agg(created_at, E'\\n' ORDER BY number) AS created_at,
    string_agg(float8send(own), ''::bytea ORDER BY number) AS own,
    string_agg(float8send(context), ''::bytea ORDER BY number) AS context,
    string_agg(float8send(CASE WHEN after IS NULL THEN 'NaN' ELSE own_after END), ''::bytea
        ORDER BY number) AS after,
    string_agg(float8send(CASE WHEN session IS NULL THEN 'NaN' ELSE session_score END), ''::bytea
        ORDER BY number) AS session,
    string_agg(float8send(coalesce(cosine, 0)), ''::bytea ORDER BY number) AS cosine,
    string_agg(float8send(CASE WHEN before IS NULL THEN 'NaN'
        ELSE coalesce(cosine_before, 0) END), ''::bytea ORDER BY number) AS cosine_before,
    string_agg(float8send(CASE WHEN after IS NULL THEN 'NaN'
        ELSE coalesce(cosine_after, 0) END), ''::bytea ORDER BY number) AS cosine_after,
    string_agg(float8send(length), ''::bytea ORDER BY number) AS length,
    string_agg(float8send(importance), ''::bytea ORDER BY number) AS importance,
    string_agg(float8send(asks::integer), ''::bytea ORDER BY number) AS asks,
    string_agg(float8send(coalesce(before_asks, false)::integer), ''::bytea
        ORDER BY number) AS answers,
    string_agg(float8send((before IS NULL AND session IS NOT NULL)::integer), ''::bytea
        ORDER BY number) AS opening,
    string_agg(float8send(coalesce(speaker = ANY (q.speakers), false)::integer), ''::bytea
        ORDER BY number) AS speaker,
    (SELECT sum(score) FROM own) AS own_sum,
    (SELECT sum(score * score) FROM own) AS own_squares,
    (SELECT sum(score) * greatest(1, (SELECT count(*) FROM own) / {sampled}) FROM context_sample)
        AS context_sum,
    (SELECT sum(score * score) * greatest(1, (SELECT count(*) FROM own) / {sampled})
        FROM context_sample) AS context_squares,
    (SELECT sum(score) FROM session_scores) AS session_sum,
    (SELECT sum(score * score) FROM session_scores) AS session_squares,
    (SELECT avg(cosine) FROM near WHERE sampled) AS meaning_mean,
    (SELECT stddev_pop(cosine) FROM near WHERE sampled) AS meaning_spread,
    (SELECT sum(worth) FROM rarity) AS most
FROM rows, question AS q
"""
_CANDIDATES = (
    _CANDIDATES.replace("{postings}", str(MOST_POSTINGS))
    .replace("{chosen}", str(CHOSEN))
    .replace("{sampled}", str(_SAMPLED))
    .replace("{sample}", str(_SAMPLE))
)
