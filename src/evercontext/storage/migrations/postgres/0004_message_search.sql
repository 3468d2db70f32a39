-- SQLite's full-text index has rows of its own; here messages are searched themselves, and what
-- takes a message out of that index finds nothing to do.
CREATE TABLE message_words (
    rowid BIGINT PRIMARY KEY
);
