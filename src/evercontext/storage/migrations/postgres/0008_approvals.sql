-- Questions that a run waits on, open to every process of the user: the first answer wins.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    nonce TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    project_path TEXT NOT NULL,
    tool TEXT NOT NULL,
    question TEXT NOT NULL,
    owner TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'allowed', 'denied', 'withdrawn')),
    answered_by TEXT,
    feedback TEXT,
    answered_at TEXT
);

CREATE INDEX approvals_by_state ON approvals (project_path, state, asked_at);
