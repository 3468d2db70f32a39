-- The last commit that was looked at, path by path: git's name of the blob, and its content where
-- that is indexed. A content stays known while a commit has it, whatever the work tree does.
CREATE TABLE committed (
    path TEXT PRIMARY KEY,
    blob TEXT NOT NULL,
    content TEXT
);
CREATE INDEX committed_content ON committed (content);
