-- Vectors by an embedder other than the packaged one, per content: a hash of each chunk's text, so
-- that a changed file pays only for its changed chunks, and one row of small numbers per chunk and
-- for the names.
CREATE TABLE vectors (
    hash TEXT PRIMARY KEY,
    maker TEXT NOT NULL,
    keys BLOB NOT NULL,
    numbers BLOB NOT NULL
);
