-- Who is asked, and who had a text judged. No user: '' (it belongs to the project).
ALTER TABLE approvals ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

ALTER TABLE evaluations ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
