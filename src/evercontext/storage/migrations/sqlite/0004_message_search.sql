-- Full-text search over what was said. Trigrams find parts of words, and Japanese, which has no
-- spaces between them. Filled when somebody searches; what is deleted leaves it at once.
CREATE VIRTUAL TABLE message_words USING fts5(content, tokenize = 'trigram');
