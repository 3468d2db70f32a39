-- Memories: one row each is the truth. Its terms and its vector are kept beside the text, so that
-- the search structures in memory are rebuilt without reading the text again. No project: ''; no
-- user: '' (it belongs to the project). Turns of a conversation are never duplicates of each other.
CREATE TABLE memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    session_id TEXT,
    speaker TEXT,
    memory_type TEXT NOT NULL,
    source_type TEXT NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    importance REAL NOT NULL DEFAULT 0.5,
    untrusted INTEGER NOT NULL DEFAULT 0,
    origin TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    valid_from TEXT NOT NULL,
    valid_until TEXT,
    superseded_by TEXT,
    state TEXT NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'archived', 'superseded', 'forgotten')),
    seen INTEGER NOT NULL DEFAULT 1,
    change INTEGER NOT NULL,
    encoder TEXT,
    terms BLOB,
    vector BLOB,
    checksum TEXT
);

CREATE UNIQUE INDEX memories_by_id ON memories (project, user_id, id);

CREATE UNIQUE INDEX memories_once ON memories (project, user_id, digest) WHERE state = 'active';

CREATE INDEX memories_by_change ON memories (change);

CREATE INDEX memories_of_scope ON memories (project, user_id, change);
