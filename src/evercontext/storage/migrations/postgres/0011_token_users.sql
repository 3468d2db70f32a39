-- Whose memories the bearer of a token sees and keeps. None: those of the project alone.
ALTER TABLE tokens ADD COLUMN user_id TEXT;
