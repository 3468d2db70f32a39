CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row per path that was ever seen. A row without content is not searchable: its reason says
-- why ("gone" for a deleted file). The generation tells readers what changed since they looked.
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    content TEXT,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    reason TEXT,
    generation INTEGER NOT NULL
);
CREATE INDEX files_generation ON files (generation);
CREATE INDEX files_content ON files (content);

-- What is known of a content, under its hash: shared by every path that has it.
CREATE TABLE contents (
    hash TEXT PRIMARY KEY,
    analysis BLOB NOT NULL
);

-- Paths that wait for the indexer, each once. The empty path stands for the whole tree.
CREATE TABLE jobs (
    path TEXT PRIMARY KEY,
    added REAL NOT NULL,
    leased_by TEXT,
    leased_until REAL NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0
);

-- Who may index now.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until REAL NOT NULL
);
