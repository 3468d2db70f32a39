"""One user's rows stay that user's, whatever another tries by raw SQL under the request role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest

from evercontext.storage.login import digest_of
from tests import postgres
from tests.access.shared_database import (
    OTHER_PROJECT,
    OWNER,
    REQUESTS,
    SECRET,
    SHARED,
    SharedDatabase,
    new_shared_database,
)

OF_BOB = (
    SECRET,
    SHARED,
    "Bob prefers tabs",
    "title of bob",
    "bob says",
    "plan of bob",
    "question-of-bob",
    "session-of-bob",
)
REFUSED, NOTHING, OWN_ROWS = "refused", "nothing", "own rows"


class Way(NamedTuple):
    """One way to get at another's rows: statements that Ann sends, and what becomes of the last."""

    name: str
    outcome: str
    statements: tuple[str, ...]


def way(name: str, outcome: str, *statements: str) -> Way:
    """Describe one."""
    return Way(name, outcome, statements)


ALL = "SELECT * FROM memories WHERE user_id = 'bob'"
WAYS = (
    way("ask for the rows", NOTHING, ALL),
    way("ask for every row", OWN_ROWS, "SELECT * FROM memories"),
    way("name another user in a setting", NOTHING, "SET evercontext.user = 'bob'", ALL),
    way("log in by a name instead of a token", NOTHING, "SET evercontext.login = 'bob'", ALL),
    way("log in by the stored digest", NOTHING, "SET evercontext.login = '{digest}'", ALL),
    way("log out", NOTHING, "RESET evercontext.login", "SELECT * FROM memories"),
    way("reset every setting", NOTHING, "RESET ALL", "SELECT * FROM memories"),
    way("turn row security off", REFUSED, "SET row_security = off", "SELECT * FROM memories"),
    way("become the owner", REFUSED, f"SET ROLE {OWNER}"),
    way("become the superuser", REFUSED, "SET ROLE postgres"),
    way("change the session's user", REFUSED, f"SET SESSION AUTHORIZATION {OWNER}"),
    way("let the role bypass security", REFUSED, f"ALTER ROLE {REQUESTS} BYPASSRLS"),
    way("join the owner's role", REFUSED, f"GRANT {OWNER} TO {REQUESTS}"),
    way("disable the policies", REFUSED, "ALTER TABLE memories DISABLE ROW LEVEL SECURITY"),
    way("drop a policy", REFUSED, "DROP POLICY seen ON memories"),
    way("add a policy", REFUSED, "CREATE POLICY all_of_it ON memories USING (true)"),
    way("take the table", REFUSED, f"ALTER TABLE memories OWNER TO {REQUESTS}"),
    way("make a view", REFUSED, "CREATE VIEW peek AS SELECT * FROM memories"),
    way("make a function", REFUSED, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
    way(
        "replace the login function",
        REFUSED,
        "CREATE OR REPLACE FUNCTION current_login() RETURNS text LANGUAGE sql AS $$SELECT 'bob'$$",
    ),
    way(
        "make an operator",
        REFUSED,
        "CREATE OPERATOR === (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)",
    ),
    way("make a table that inherits", REFUSED, "CREATE TABLE child () INHERITS (memories)"),
    way(
        "shadow the table of logins",
        REFUSED,
        "CREATE TEMP TABLE logins AS SELECT '{digest}' AS digest, 'bob' AS user_name",
    ),
    way(
        "make a temporary function",
        REFUSED,
        "CREATE FUNCTION pg_temp.current_login() RETURNS text LANGUAGE sql AS $$SELECT 'bob'$$",
    ),
    way("make a schema for the search path", REFUSED, "CREATE SCHEMA mine"),
    way("look elsewhere for functions", NOTHING, "SET search_path = pg_temp, public, mine", ALL),
    way(
        "run an anonymous block",
        NOTHING,
        f"DO $$DECLARE m record; BEGIN FOR m IN {ALL} LOOP RAISE NOTICE '%', m; END LOOP; END$$",
    ),
    way("read the logins", REFUSED, "SELECT * FROM logins"),
    way("read the users", REFUSED, "SELECT * FROM users"),
    way("read the memberships", REFUSED, "SELECT * FROM memberships"),
    way(
        "make oneself a member",
        REFUSED,
        f"INSERT INTO memberships VALUES ('{OTHER_PROJECT}', 'ann', NULL, 'reader')",
    ),
    way(
        "make oneself a member by the admin's function",
        REFUSED,
        f"SELECT set_membership('{OTHER_PROJECT}', 'ann', 'reader')",
    ),
    way(
        "list another project's members",
        NOTHING,
        f"SELECT * FROM project_members('{OTHER_PROJECT}')",
    ),
    way(
        "forge the name of a project",
        NOTHING,
        f"SELECT * FROM memories WHERE project = '{OTHER_PROJECT}'",
    ),
    way(
        "plant a memory in a forged project",
        REFUSED,
        "INSERT INTO memories (id, project, memory_type, source_type, content, digest, created_at,"
        f" valid_from, change)"
        f" VALUES ('x', '{OTHER_PROJECT}', 'longterm', 'tool', 'x', 'x', '', '', 1)",
    ),
    way(
        "write as another user",
        REFUSED,
        "INSERT INTO sessions (id, project_path, model_used, user_id)"
        " VALUES ('x', '/', 'm', 'bob')",
    ),
    way("give one's own row away", REFUSED, "UPDATE sessions SET user_id = 'bob'"),
    way(
        "take another's row",
        NOTHING,
        "UPDATE memories SET user_id = 'ann' WHERE user_id = 'bob' RETURNING *",
    ),
    way("delete another's rows", NOTHING, "DELETE FROM memories WHERE user_id = 'bob' RETURNING *"),
    way(
        "merge into another's rows",
        NOTHING,
        "MERGE INTO sessions AS s USING (SELECT 'session-of-bob' AS id) AS x ON s.id = x.id"
        " WHEN MATCHED THEN UPDATE SET user_id = 'ann'",
        "SELECT * FROM sessions WHERE id ~ 'bob'",
    ),
    way(
        "update where a key is taken",
        REFUSED,
        "INSERT INTO sessions (id, project_path, model_used, user_id)"
        " VALUES ('session-of-bob', '/', 'm', 'ann') ON CONFLICT (id) DO UPDATE SET title = 'x'"
        " RETURNING *",
    ),
    way(
        "write into another's session",
        REFUSED,
        "INSERT INTO messages (session_id, role, content)"
        " VALUES ('session-of-bob', 'user', 'x') RETURNING *",
    ),
    way("lock another's rows", NOTHING, f"{ALL} FOR UPDATE"),
    way(
        "read by the place on the disk",
        OWN_ROWS,
        "SELECT * FROM memories WHERE ctid = ANY"
        " (ARRAY['(0,1)','(0,2)','(0,3)','(0,4)','(0,5)']::tid[])",
    ),
    way("read a sample of the table", OWN_ROWS, "SELECT * FROM memories TABLESAMPLE SYSTEM (100)"),
    way("copy the table out", OWN_ROWS, "COPY memories TO STDOUT"),
    way("copy a query out", NOTHING, f"COPY ({ALL}) TO STDOUT"),
    way("copy to a program", REFUSED, "COPY memories TO PROGRAM 'cat'"),
    way("copy to a file", REFUSED, "COPY memories TO '/tmp/memories'"),
    way("read the server's files", REFUSED, "SELECT pg_read_file('PG_VERSION')"),
    way("list the server's files", REFUSED, "SELECT pg_ls_dir('.')"),
    way("show a query as XML", NOTHING, f"SELECT query_to_xml($${ALL}$$, false, true, '')::text"),
    way("show the schema as XML", REFUSED, "SELECT schema_to_xml('public', false, true, '')::text"),
    way("make an error tell the text", OWN_ROWS, "SELECT content::integer FROM memories"),
    way(
        "divide by what another's row holds",
        NOTHING,
        f"SELECT 1 / (length(content) - length('{SECRET}')) FROM memories WHERE user_id = 'bob'",
    ),
    way(
        "read the planner's statistics",
        NOTHING,
        "SELECT * FROM pg_stats WHERE tablename IN ('memories', 'messages', 'sessions')",
    ),
    way("read the statistics' table", REFUSED, "SELECT * FROM pg_statistic"),
    way("explain what was read", OWN_ROWS, "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM memories"),
    way("read others' statements", OWN_ROWS, "SELECT query FROM pg_stat_activity"),
    way(
        "read the words of the search index",
        NOTHING,
        "SELECT p.* FROM memory_postings AS p JOIN memory_documents USING (number)"
        " WHERE p.scope NOT IN (SELECT id FROM memory_scopes)",
    ),
    way("read every scope", OWN_ROWS, "SELECT * FROM memory_scopes"),
    way("write into the search index", REFUSED, "DELETE FROM memory_postings"),
    way("call what fills the search index", REFUSED, "SELECT add_to_memory_search(ARRAY[1, 2, 3])"),
    way("read a sequence", REFUSED, "SELECT last_value FROM memories_number_seq"),
    way("turn a sequence back", REFUSED, "SELECT setval('memories_number_seq', 1)"),
    way("read large objects", REFUSED, "SELECT * FROM pg_largeobject"),
    way("listen to a channel", NOTHING, "LISTEN evercontext", "SELECT 1 WHERE false"),
    way(
        "fetch from a cursor that outlives a login",
        OWN_ROWS,
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM memories",
        "SELECT set_config('evercontext.login', '{bob_is_here}', false)",
        "FETCH ALL FROM c",
    ),
    way("add an extension", REFUSED, "CREATE EXTENSION dblink"),
    way("load a library", REFUSED, "LOAD '/tmp/evil.so'"),
    way("change the server's settings", REFUSED, "ALTER SYSTEM SET row_security = off"),
    way(
        "replicate the tables",
        REFUSED,
        "SELECT pg_create_logical_replication_slot('s', 'test_decoding')",
    ),
    way("publish the tables", REFUSED, "CREATE PUBLICATION p FOR TABLE memories"),
    way("prepare a transaction for later", REFUSED, "BEGIN", "PREPARE TRANSACTION 'x'"),
    way("grant the table to everybody", REFUSED, "GRANT SELECT ON logins TO PUBLIC"),
    way("read stored questions", OWN_ROWS, "SELECT * FROM approvals"),
    way("read stored plans", OWN_ROWS, "SELECT * FROM kept"),
    way(
        "take another's key",
        REFUSED,
        "INSERT INTO kept VALUES ('user:bob:plan', 'x')"
        " ON CONFLICT (key) DO UPDATE SET value = 'x'",
    ),
    way(
        "allow what another's commands may do",
        REFUSED,
        "INSERT INTO permission_rules (project_path, verdict, rule) VALUES ('/app', 'allow', '*')",
    ),
)


@pytest.fixture(scope="module")
def database() -> Iterator[SharedDatabase]:
    made = new_shared_database()
    name = str(psycopg.conninfo.conninfo_to_dict(made.owner)["dbname"])
    postgres.run("ANALYZE", name)
    # Bob is at work beside Ann: what he asks stands in the list of statements.
    with made.as_(made.bob) as bob:
        bob.execute("SELECT * FROM memories WHERE content = %s", [SECRET])
        yield made


def _tried(link: Any, statement: str) -> tuple[str, list[Any]]:
    """Send one statement; return what became of it, and everything that came back."""
    try:
        if statement.startswith("COPY") and "STDOUT" in statement:
            with link.cursor().copy(statement.encode()) as copy:
                rows: list[Any] = [bytes(block).decode() for block in copy]
        else:
            ran = link.execute(statement.encode(), prepare=False)
            rows = ran.fetchall() if ran.description else []
    except psycopg.errors.InvalidTextRepresentation as error:
        return OWN_ROWS, [str(error)]
    except psycopg.Error as error:
        return REFUSED, [str(error)]
    return OWN_ROWS if any(any(row) for row in rows) else NOTHING, rows


def test_there_are_more_than_thirty_ways() -> None:
    assert len({one.name for one in WAYS}) == len(WAYS) >= 30


@pytest.mark.parametrize("tried", WAYS, ids=lambda one: one.name)
def test_no_way_leads_to_another_users_rows(tried: Way, database: SharedDatabase) -> None:
    notices: list[str] = []
    with database.as_(database.ann) as link:
        link.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        outcome, seen = "", []
        for statement in tried.statements:
            filled = statement.replace("{digest}", digest_of(database.bob)).replace(
                "{bob_is_here}", database.bob
            )
            outcome, rows = _tried(link, filled)
            seen += [] if "{bob_is_here}" in statement else rows
        link.execute("ROLLBACK")
    text = json.dumps([*map(str, seen), *notices])
    assert [part for part in (*OF_BOB, database.bob, digest_of(database.bob)) if part in text] == []
    assert outcome == tried.outcome, text


def test_what_was_tried_has_changed_nothing(database: SharedDatabase) -> None:
    with database.as_(database.bob) as link:
        rows = link.execute("SELECT content FROM memories ORDER BY number").fetchall()
        assert [row[0] for row in rows] == [SECRET, SHARED, "Bob prefers tabs everywhere"]
        assert link.execute("SELECT title FROM sessions").fetchall() == [("title of bob",)]
        assert link.execute("SELECT value FROM kept").fetchall() == [("plan of bob",)]


def test_a_statement_prepared_by_one_user_shows_another_only_their_own(
    database: SharedDatabase,
) -> None:
    with database.as_(database.bob) as link:
        link.execute("PREPARE mine AS SELECT content FROM memories")
        link.execute("SET plan_cache_mode = force_generic_plan")
        of_bob = {row[0] for row in link.execute("EXECUTE mine", prepare=False).fetchall()}
        link.execute("SELECT set_config('evercontext.login', %s, false)", [database.ann])
        of_ann = {row[0] for row in link.execute("EXECUTE mine", prepare=False).fetchall()}
    assert SECRET in of_bob
    assert of_ann == {"Ann likes short functions", "The app is released on Mondays"}
