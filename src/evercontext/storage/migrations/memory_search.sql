-- What questions about memories read in PostgreSQL with pgvector. Everything here is derived from
-- the table memories by triggers, so it can be dropped and built again at any time; only active
-- memories are in it. The comment on memory_documents holds this file's version.
CREATE EXTENSION IF NOT EXISTS vector;

DROP TABLE IF EXISTS memory_documents, memory_postings, memory_sessions, memory_scopes;

DROP FUNCTION IF EXISTS memory_terms_of, memory_embedding_of, add_to_memory_search,
    remove_from_memory_search, follow_memories CASCADE;

-- Nothing is written between the first reading of the table and the triggers.
LOCK TABLE memories IN SHARE ROW EXCLUSIVE MODE;

-- One number for each owner of memories: a user in a project, a project, a user anywhere.
CREATE TABLE memory_scopes (
    id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project TEXT NOT NULL,
    user_id TEXT NOT NULL,
    UNIQUE (project, user_id)
);

CREATE TABLE memory_documents (
    number BIGINT PRIMARY KEY,
    session BIGINT,
    scope INTEGER NOT NULL,
    length INTEGER NOT NULL,
    importance REAL NOT NULL,
    working BOOLEAN NOT NULL,
    asks BOOLEAN NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C",
    speaker TEXT,
    encoder TEXT COLLATE "C",
    embedding halfvec
);

CREATE INDEX memory_documents_of_scope ON memory_documents (scope, encoder) INCLUDE (length);

CREATE INDEX memory_documents_of_session ON memory_documents (session, number)
    WHERE session IS NOT NULL;

CREATE INDEX memory_documents_by_time ON memory_documents (scope, created_at);

CREATE INDEX memory_documents_by_speaker ON memory_documents (scope, speaker)
    WHERE speaker IS NOT NULL;

CREATE INDEX memory_documents_sample ON memory_documents (scope) WHERE number % 64 = 0;

-- The inverted index. A term is the number that a memory's row has for it, less 2^31.
CREATE TABLE memory_postings (
    number BIGINT NOT NULL,
    session BIGINT,
    scope INTEGER NOT NULL,
    term INTEGER NOT NULL,
    count INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (scope, term, number) INCLUDE (count, length, session)
);

CREATE INDEX memory_postings_sample ON memory_postings (scope, term) WHERE number % 64 = 0;

CREATE TABLE memory_sessions (
    session BIGINT NOT NULL,
    scope INTEGER NOT NULL,
    length BIGINT NOT NULL,
    PRIMARY KEY (scope, session)
);

-- Six bytes a term, as memory/encoding.py writes them: its number and its count.
CREATE FUNCTION memory_terms_of(terms bytea) RETURNS TABLE (term INTEGER, count INTEGER)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (get_byte(terms, i) + get_byte(terms, i + 1) * 256 + get_byte(terms, i + 2) * 65536
            + get_byte(terms, i + 3)::bigint * 16777216 - 2147483648)::integer,
        get_byte(terms, i + 4) + get_byte(terms, i + 5) * 256
    FROM generate_series(0, length(terms) - 6, 6) AS i
$$;

-- A byte a number, with its sign; a vector of nothing but zeros has no direction.
CREATE FUNCTION memory_embedding_of(stored bytea) RETURNS halfvec
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN max(abs(value)) > 0 THEN array_agg(value ORDER BY i)::real[]::halfvec END
    FROM (
        SELECT i, (get_byte(stored, i) + 128) % 256 - 128 AS value
        FROM generate_series(0, length(stored) - 1) AS i
    ) AS numbers
$$;

CREATE FUNCTION remove_from_memory_search(numbers BIGINT[], terms BYTEA[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memory_postings AS p
    USING unnest(numbers, terms) AS gone (number, terms)
        JOIN memory_documents AS d USING (number)
        CROSS JOIN LATERAL memory_terms_of(gone.terms) AS t
    WHERE p.scope = d.scope AND p.term = t.term AND p.number = gone.number;
    WITH removed AS (
        DELETE FROM memory_documents AS d WHERE d.number = ANY (numbers)
        RETURNING d.scope, d.session, d.length
    ), totals AS (
        SELECT scope, session, sum(length) AS length FROM removed WHERE session IS NOT NULL
        GROUP BY scope, session ORDER BY scope, session
    )
    UPDATE memory_sessions AS s SET length = s.length - totals.length
    FROM totals WHERE s.scope = totals.scope AND s.session = totals.session;
END
$$;

CREATE FUNCTION add_to_memory_search(numbers BIGINT[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_scopes (project, user_id)
    SELECT DISTINCT m.project, m.user_id FROM memories AS m
    WHERE m.number = ANY (numbers) AND m.state = 'active' AND NOT EXISTS (
        SELECT 1 FROM memory_scopes AS s WHERE s.project = m.project AND s.user_id = m.user_id)
    ORDER BY m.project, m.user_id ON CONFLICT DO NOTHING;
    WITH added AS (
        INSERT INTO memory_documents (number, session, scope, length, importance, working, asks,
            created_at, expires_at, speaker, encoder, embedding)
        SELECT m.number, hashtextextended(m.session_id, 0), s.id, t.length, m.importance,
            m.memory_type = 'working', t.asks, m.created_at, m.expires_at, m.speaker, m.encoder,
            memory_embedding_of(m.vector)
        FROM memories AS m JOIN memory_scopes AS s USING (project, user_id)
            CROSS JOIN LATERAL (
                SELECT coalesce(sum(count), 0) AS length,
                    -- The term of a memory that ends in a question.
                    coalesce(bool_or(term = -463158608), false) AS asks
                FROM memory_terms_of(m.terms)
            ) AS t
        WHERE m.number = ANY (numbers) AND m.state = 'active'
        ON CONFLICT DO NOTHING
        RETURNING number, session, scope, length
    ), posted AS (
        INSERT INTO memory_postings (number, session, scope, term, count, length)
        SELECT a.number, a.session, a.scope, t.term, t.count, a.length
        FROM added AS a JOIN memories AS m USING (number)
            CROSS JOIN LATERAL memory_terms_of(m.terms) AS t
    )
    INSERT INTO memory_sessions AS s (scope, session, length)
    SELECT scope, session, sum(length) FROM added WHERE session IS NOT NULL
    GROUP BY scope, session ORDER BY scope, session
    ON CONFLICT (scope, session) DO UPDATE SET length = s.length + excluded.length;
END
$$;

CREATE FUNCTION follow_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_to_memory_search(array_agg(number)) FROM fresh WHERE state = 'active';
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM remove_from_memory_search(array_agg(number), array_agg(terms)) FROM gone;
    ELSE
        -- Told again or valid for longer: the words and the owner are those of before.
        UPDATE memory_documents AS d
        SET importance = fresh.importance, expires_at = fresh.expires_at
        FROM fresh WHERE d.number = fresh.number AND (d.importance, d.expires_at)
            IS DISTINCT FROM (fresh.importance::real, fresh.expires_at);
        PERFORM remove_from_memory_search(array_agg(number), array_agg(gone.terms))
        FROM gone JOIN fresh USING (number)
        WHERE (gone.state, gone.project, gone.user_id, gone.terms, gone.vector, gone.encoder,
                gone.session_id, gone.speaker, gone.created_at, gone.memory_type)
            IS DISTINCT FROM (fresh.state, fresh.project, fresh.user_id, fresh.terms, fresh.vector,
                fresh.encoder, fresh.session_id, fresh.speaker, fresh.created_at,
                fresh.memory_type);
        -- Those that were not taken out are there still.
        PERFORM add_to_memory_search(array_agg(number)) FROM fresh
        WHERE state = 'active' AND NOT EXISTS (
            SELECT 1 FROM memory_documents AS d WHERE d.number = fresh.number);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER search_follows_insert AFTER INSERT ON memories
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION follow_memories();

CREATE TRIGGER search_follows_update AFTER UPDATE ON memories
    REFERENCING OLD TABLE AS gone NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION follow_memories();

CREATE TRIGGER search_follows_delete AFTER DELETE ON memories
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION follow_memories();

SELECT add_to_memory_search(array_agg(number)) FROM memories WHERE state = 'active';

ANALYZE memory_documents, memory_postings, memory_sessions;
