-- Every judgement of a document. The document's text is not here: it may hold what no database
-- should; versions made by improve lie as files under the home folder. No path: ''. JSON in TEXT.
CREATE TABLE evaluations (
    id TEXT PRIMARY KEY,
    trace_id TEXT NOT NULL,
    door TEXT NOT NULL,
    project TEXT NOT NULL DEFAULT '',
    document TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    round BIGINT,
    digest TEXT NOT NULL,
    judge TEXT NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    target DOUBLE PRECISION NOT NULL,
    rubric_scores TEXT NOT NULL,
    weights TEXT NOT NULL,
    suggestions TEXT NOT NULL,
    milliseconds BIGINT NOT NULL DEFAULT 0,
    at TEXT NOT NULL
);

CREATE INDEX evaluations_of_document ON evaluations (document, id);

CREATE INDEX evaluations_of_project ON evaluations (project, id);

CREATE INDEX evaluations_of_trace ON evaluations (trace_id);
