-- Full-text search over what was said. Trigrams find parts of words, and Japanese, which has no
-- spaces between them. The text itself stays in messages.
CREATE VIRTUAL TABLE message_words USING fts5(
    content,
    content = 'messages',
    content_rowid = 'id',
    tokenize = 'trigram'
);

INSERT INTO message_words (rowid, content) SELECT id, content FROM messages;

CREATE TRIGGER message_words_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_words (rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER message_words_removed AFTER DELETE ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TRIGGER message_words_changed AFTER UPDATE OF content ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO message_words (rowid, content) VALUES (new.id, new.content);
END;
