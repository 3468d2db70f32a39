-- Users of a shared database, and the rows that each of them may see. Written so that it can be run
-- again at any time. The comment on the table users holds this file's version. Whoever owns the
-- tables sees everything; a request role sees what the login of its session may.
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY CHECK (name <> '' AND name !~ ':'),
    subject TEXT UNIQUE,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    removed_at TIMESTAMPTZ
);

-- A token is stored as its digest alone. Without an end it holds until somebody ends it.
CREATE TABLE IF NOT EXISTS logins (
    digest TEXT PRIMARY KEY,
    user_name TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    label TEXT NOT NULL DEFAULT '',
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    until TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS groups (
    name TEXT PRIMARY KEY CHECK (name <> '')
);

CREATE TABLE IF NOT EXISTS group_users (
    group_name TEXT NOT NULL REFERENCES groups (name) ON DELETE CASCADE,
    user_name TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    PRIMARY KEY (group_name, user_name)
);

CREATE TABLE IF NOT EXISTS memberships (
    project TEXT NOT NULL CHECK (project <> ''),
    user_name TEXT REFERENCES users (name) ON DELETE CASCADE,
    group_name TEXT REFERENCES groups (name) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('reader', 'member', 'admin')),
    CHECK (num_nonnulls(user_name, group_name) = 1)
);

CREATE UNIQUE INDEX IF NOT EXISTS memberships_of_users ON memberships (user_name, project)
    WHERE user_name IS NOT NULL;

CREATE UNIQUE INDEX IF NOT EXISTS memberships_of_groups ON memberships (group_name, project)
    WHERE group_name IS NOT NULL;

-- Roles that requests run under: what is built anew is granted to them again.
CREATE TABLE IF NOT EXISTS request_roles (
    name TEXT PRIMARY KEY
);

-- The setting holds a secret, not a name: setting it to something that is no token gives nothing.
CREATE OR REPLACE FUNCTION current_login() RETURNS TEXT
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE AS $$
    SELECT u.name FROM logins AS l JOIN users AS u ON u.name = l.user_name
    WHERE l.digest = encode(sha256(convert_to(
            coalesce(current_setting('evercontext.login', true), ''), 'UTF8')), 'hex')
        AND u.removed_at IS NULL AND (l.until IS NULL OR l.until > now())
$$;

CREATE OR REPLACE FUNCTION login_projects(lowest TEXT) RETURNS TEXT[]
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT m.project), '{}') FROM memberships AS m
    WHERE (m.user_name = current_login() OR m.group_name IN (
            SELECT g.group_name FROM group_users AS g WHERE g.user_name = current_login()))
        AND array_position(ARRAY['reader', 'member', 'admin'], m.role)
            >= array_position(ARRAY['reader', 'member', 'admin'], lowest)
$$;

CREATE OR REPLACE FUNCTION login_role(named TEXT) RETURNS TEXT
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE AS $$
    SELECT CASE WHEN named = ANY (login_projects('admin')) THEN 'admin'
        WHEN named = ANY (login_projects('member')) THEN 'member'
        WHEN named = ANY (login_projects('reader')) THEN 'reader' END
$$;

-- What an admin of a project may do without owning the database: the members of that project.
CREATE OR REPLACE FUNCTION set_membership(named TEXT, who TEXT, role_given TEXT) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF login_role(named) IS DISTINCT FROM 'admin' THEN
        RAISE insufficient_privilege USING MESSAGE = 'only an admin of the project may do that';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM users AS u WHERE u.name = who AND u.removed_at IS NULL) THEN
        RAISE insufficient_privilege USING MESSAGE = 'there is no such user';
    END IF;
    DELETE FROM memberships AS m WHERE m.project = named AND m.user_name = who;
    IF role_given IS NOT NULL THEN
        INSERT INTO memberships (project, user_name, role) VALUES (named, who, role_given);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION project_members(named TEXT)
RETURNS TABLE (user_name TEXT, group_name TEXT, role TEXT)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT m.user_name, m.group_name, m.role FROM memberships AS m
    WHERE m.project = named AND login_role(named) IS NOT NULL
    ORDER BY m.user_name, m.group_name
$$;

-- The keys that belong to the login; a name holds no colon.
CREATE OR REPLACE FUNCTION login_prefix() RETURNS TEXT
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE AS $$
    SELECT 'user:' || current_login() || ':'
$$;

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON sessions;
CREATE POLICY own ON sessions USING (user_id = (SELECT current_login()));

ALTER TABLE messages ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON messages;
CREATE POLICY own ON messages USING (EXISTS (
    SELECT 1 FROM sessions AS s
    WHERE s.id = messages.session_id AND s.user_id = (SELECT current_login())));

ALTER TABLE message_words ENABLE ROW LEVEL SECURITY;

ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON memories;
CREATE POLICY seen ON memories FOR SELECT USING (user_id = (SELECT current_login())
    OR (user_id = '' AND project = ANY ((SELECT login_projects('reader'))::text[])));
DROP POLICY IF EXISTS added ON memories;
CREATE POLICY added ON memories FOR INSERT WITH CHECK (user_id = (SELECT current_login())
    OR (user_id = '' AND project = ANY ((SELECT login_projects('member'))::text[])));
DROP POLICY IF EXISTS changed ON memories;
CREATE POLICY changed ON memories FOR UPDATE USING (user_id = (SELECT current_login())
    OR (user_id = '' AND project = ANY ((SELECT login_projects('member'))::text[])));
DROP POLICY IF EXISTS removed ON memories;
CREATE POLICY removed ON memories FOR DELETE USING (user_id = (SELECT current_login())
    OR (user_id = '' AND project = ANY ((SELECT login_projects('member'))::text[])));

ALTER TABLE approvals ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON approvals;
CREATE POLICY own ON approvals USING (user_id = (SELECT current_login()));

ALTER TABLE evaluations ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON evaluations;
CREATE POLICY own ON evaluations USING (user_id = (SELECT current_login()));

ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON kept;
CREATE POLICY own ON kept USING (starts_with(key, (SELECT login_prefix())));

-- A user's rules bind the user; those without one bind everybody, and only the owner writes them.
ALTER TABLE permission_rules ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON permission_rules;
CREATE POLICY own ON permission_rules USING (starts_with(project_path, (SELECT login_prefix())));
DROP POLICY IF EXISTS everybody ON permission_rules;
CREATE POLICY everybody ON permission_rules FOR SELECT
    USING ((SELECT current_login()) IS NOT NULL AND NOT starts_with(project_path, 'user:'));

-- No policy: nobody but the owner sees or changes anything here.
ALTER TABLE servers ENABLE ROW LEVEL SECURITY;
ALTER TABLE tool_pins ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE traces ENABLE ROW LEVEL SECURITY;
ALTER TABLE users ENABLE ROW LEVEL SECURITY;
ALTER TABLE logins ENABLE ROW LEVEL SECURITY;
ALTER TABLE groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE group_users ENABLE ROW LEVEL SECURITY;
ALTER TABLE memberships ENABLE ROW LEVEL SECURITY;
ALTER TABLE request_roles ENABLE ROW LEVEL SECURITY;

-- The planner shows its estimates to everybody: it must not know texts that occur often.
ALTER TABLE memories ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN tool_calls SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN tool_results SET STATISTICS 0;
ALTER TABLE sessions ALTER COLUMN title SET STATISTICS 0;

-- The same for the tables that are derived from memories (memory_search.sql). The triggers that fill them work as the
-- owner; whoever writes a memory needs no right to them.
CREATE INDEX IF NOT EXISTS memory_scopes_of_user ON memory_scopes (user_id);

CREATE OR REPLACE FUNCTION login_scopes() RETURNS INTEGER[]
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(s.id), '{}') FROM memory_scopes AS s
    WHERE s.user_id = current_login()
        OR (s.user_id = '' AND s.project = ANY (login_projects('reader')))
$$;

ALTER FUNCTION follow_memories() SECURITY DEFINER;
REVOKE EXECUTE ON FUNCTION add_to_memory_search(BIGINT[]) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION remove_from_memory_search(BIGINT[], BYTEA[]) FROM PUBLIC;

ALTER TABLE memory_scopes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON memory_scopes;
CREATE POLICY seen ON memory_scopes USING (id = ANY ((SELECT login_scopes())::integer[]));

ALTER TABLE memory_documents ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON memory_documents;
CREATE POLICY seen ON memory_documents USING (scope = ANY ((SELECT login_scopes())::integer[]));

ALTER TABLE memory_postings ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON memory_postings;
CREATE POLICY seen ON memory_postings USING (scope = ANY ((SELECT login_scopes())::integer[]));

ALTER TABLE memory_sessions ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON memory_sessions;
CREATE POLICY seen ON memory_sessions USING (scope = ANY ((SELECT login_scopes())::integer[]));
