-- What the user allowed or denied for good, by project; the rule's text is what was shown.
CREATE TABLE permission_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_path TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'ask', 'deny')),
    rule TEXT NOT NULL,
    created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (project_path, rule)
);
