-- Outside tool servers, who may use them, and what their tools looked like when first trusted.
-- No project: '' (the server belongs to everybody who has no other). JSON in TEXT columns.
CREATE TABLE servers (
    id TEXT PRIMARY KEY,
    transport TEXT NOT NULL CHECK (transport IN ('stdio', 'http')),
    argv TEXT NOT NULL DEFAULT '[]',
    url TEXT NOT NULL DEFAULT '',
    env TEXT NOT NULL DEFAULT '{}',
    headers TEXT NOT NULL DEFAULT '{}',
    cwd TEXT NOT NULL DEFAULT '',
    project TEXT NOT NULL DEFAULT '',
    enabled BIGINT NOT NULL DEFAULT 1,
    tool_permissions TEXT NOT NULL DEFAULT '{}',
    call_seconds DOUBLE PRECISION NOT NULL DEFAULT 60
);

CREATE TABLE tool_pins (
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    held TEXT,
    PRIMARY KEY (server, tool)
);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    path TEXT NOT NULL DEFAULT '',
    optimization TEXT DEFAULT 'hybrid' CHECK (optimization IN ('hybrid', 'bm25', 'cloud'))
);

CREATE TABLE tokens (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    projects TEXT,
    servers TEXT,
    created_at TEXT NOT NULL,
    revoked_at TEXT
);
