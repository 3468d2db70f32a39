-- The definition behind a trusted digest: searched while its server starts, and shown beside a
-- changed one. No definition: NULL (pinned before definitions were stored).
ALTER TABLE tool_pins ADD COLUMN definition TEXT;
