-- An index of the event log, rebuilt from its segments whenever it is lost.
CREATE TABLE traces (
    trace_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    title TEXT,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    root TEXT,
    session_id TEXT,
    model TEXT,
    segment TEXT,
    segment_offset BIGINT
);

CREATE INDEX traces_by_start ON traces (started_at);

-- Small facts that must outlive a process.
CREATE TABLE kept (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
