-- Conversations. The named columns are a public contract: others read this file.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    started_at DATETIME DEFAULT CURRENT_TIMESTAMP,
    ended_at DATETIME,
    project_path TEXT NOT NULL,
    model_used TEXT NOT NULL,
    user_id TEXT,
    title TEXT,
    metadata TEXT
);

CREATE INDEX sessions_of_project ON sessions (project_path, started_at);

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT REFERENCES sessions(id),
    timestamp DATETIME DEFAULT CURRENT_TIMESTAMP,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    content TEXT,
    tool_calls TEXT,
    tool_results TEXT,
    user_id TEXT,
    trace_id TEXT,
    checksum TEXT
);

CREATE INDEX messages_of_session ON messages (session_id, id);
