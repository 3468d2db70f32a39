-- What a message was called on the machine where it waited for the server: it is taken over once.
ALTER TABLE messages ADD COLUMN entry TEXT;

CREATE UNIQUE INDEX messages_by_entry ON messages (entry) WHERE entry IS NOT NULL;
