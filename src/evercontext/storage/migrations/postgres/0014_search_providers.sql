-- The search of an installed package, where one was chosen instead of ours.
ALTER TABLE projects ADD COLUMN provider TEXT;
