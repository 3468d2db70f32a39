-- Writers do not wait for each other: a change has the number of its transaction, whatever the
-- statement says. Every number of before is older than
-- those of all transactions.
UPDATE memories SET change = 1;

CREATE FUNCTION number_change() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
    NEW.change := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END';

-- In a block, because the migrations are cut into statements by the rules of SQLite, where a
-- trigger has an end of its own.
DO '
BEGIN
    CREATE TRIGGER number_change BEFORE INSERT OR UPDATE ON memories
        FOR EACH ROW EXECUTE FUNCTION number_change();
END';
