-- The tables of a store, in a schema of their own. A released layout never changes.
--
-- * Texts are compared byte by byte (collation "C"), as in the other stores.
-- * A session is found by the SHA-256 of its id: an id may be any text, and an index holds only short ones.
-- * What a commit rewrites (head) is separate from what is written once (session). Its rows have room for new versions, and no index
--   changes with a commit but the one of the ten minutes of its last change.

CREATE TABLE bcc_script.session (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id_sha256 bytea NOT NULL UNIQUE,
    id text COLLATE "C" NOT NULL,
    user_name text COLLATE "C" NOT NULL,
    script text COLLATE "C" NOT NULL,
    script_name text COLLATE "C",
    script_sha256 text COLLATE "C" NOT NULL,
    started_at text COLLATE "C" NOT NULL,
    settings text COLLATE "C" NOT NULL,
    manifest text COLLATE "C" NOT NULL
);
CREATE INDEX session_by_user ON bcc_script.session (user_name);
CREATE INDEX session_by_id ON bcc_script.session (left(id, 100));

CREATE TABLE bcc_script.head (
    session bigint PRIMARY KEY REFERENCES bcc_script.session ON DELETE CASCADE,
    commit_number bigint NOT NULL,
    revision bigint NOT NULL,
    last_seq bigint NOT NULL,
    last_message bigint NOT NULL,
    last_cell bigint NOT NULL,
    answers bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    -- The first 15 characters of updated_at.
    period text COLLATE "C" NOT NULL,
    location text COLLATE "C" NOT NULL,
    head text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX head_by_period ON bcc_script.head (period);

CREATE TABLE bcc_script.frame (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, key)
);
CREATE TABLE bcc_script.variable (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    scope text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    round bigint,
    at text COLLATE "C" NOT NULL,
    sensitive boolean NOT NULL,
    PRIMARY KEY (session, scope, path, name)
);
CREATE TABLE bcc_script.user_variable (
    user_name text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    round bigint,
    at text COLLATE "C" NOT NULL,
    sensitive boolean NOT NULL,
    PRIMARY KEY (user_name, scope, path, name)
);
CREATE TABLE bcc_script.counter (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE TABLE bcc_script.answer (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE bcc_script.journal (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    seq bigint NOT NULL,
    at text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE INDEX journal_by_kind ON bcc_script.journal (session, kind, seq);
CREATE TABLE bcc_script.message (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    number bigint NOT NULL,
    role text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    action_id text COLLATE "C" NOT NULL,
    round bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE TABLE bcc_script.cell (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, number)
);
-- Of the id, which may be long.
CREATE UNIQUE INDEX cell_by_id ON bcc_script.cell (session, md5(id));
CREATE TABLE bcc_script.request (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    prompt text COLLATE "C" NOT NULL,
    schema text COLLATE "C",
    decisions text COLLATE "C",
    approvers text COLLATE "C",
    due_at text COLLATE "C",
    opened_at text COLLATE "C" NOT NULL,
    answered_at text COLLATE "C",
    -- Until when another process leaves it to the one that has claimed it.
    claimed_until timestamptz,
    PRIMARY KEY (session, id)
);
CREATE INDEX request_open ON bcc_script.request (session, id) WHERE answered_at IS NULL;
CREATE INDEX request_due ON bcc_script.request (rtrim(due_at, 'Z')) WHERE answered_at IS NULL AND due_at IS NOT NULL;

-- Long texts of a session.
CREATE TABLE bcc_script.stored_text (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    sha256 text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, sha256)
);
CREATE TABLE bcc_script.document (
    sha256 text COLLATE "C" PRIMARY KEY,
    text text COLLATE "C" NOT NULL
);
CREATE TABLE bcc_script.session_document (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    document text COLLATE "C" NOT NULL REFERENCES bcc_script.document,
    PRIMARY KEY (session, document)
);
CREATE INDEX session_document_by_document ON bcc_script.session_document (document);

-- What commits replaced: the head, and the rows; none for a row that did not exist.
CREATE TABLE bcc_script.replaced_head (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    revision bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    answers bigint NOT NULL,
    last_seq bigint NOT NULL,
    location text COLLATE "C" NOT NULL,
    head text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, revision)
);
CREATE TABLE bcc_script.replaced (
    session bigint NOT NULL REFERENCES bcc_script.session ON DELETE CASCADE,
    revision bigint NOT NULL,
    key jsonb NOT NULL,
    row jsonb
);
CREATE INDEX replaced_by_revision ON bcc_script.replaced (session, revision);

-- Processes, and the sessions that they run. A lease is valid as long as its process is.
CREATE TABLE bcc_script.process (
    id bigint PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE TABLE bcc_script.lease (
    session_sha256 bytea PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    process bigint NOT NULL,
    token bigint NOT NULL,
    holder text COLLATE "C" NOT NULL,
    -- Whether another process waits for it.
    is_wanted boolean NOT NULL
);
CREATE INDEX lease_wanted ON bcc_script.lease (process) WHERE is_wanted;

CREATE TABLE bcc_script.plan (
    id bigint PRIMARY KEY,
    user_name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL
);
CREATE INDEX plan_by_user ON bcc_script.plan (user_name);
CREATE TABLE bcc_script.plan_task (
    id bigint PRIMARY KEY,
    plan bigint NOT NULL REFERENCES bcc_script.plan,
    parent bigint,
    rank bigint NOT NULL,
    body text COLLATE "C" NOT NULL
);
CREATE INDEX plan_task_by_plan ON bcc_script.plan_task (plan, rank);
CREATE TABLE bcc_script.plan_edit (
    plan bigint NOT NULL,
    number bigint NOT NULL,
    key text COLLATE "C" NOT NULL UNIQUE,
    result text COLLATE "C" NOT NULL,
    PRIMARY KEY (plan, number)
);
CREATE TABLE bcc_script.plan_counter (
    name text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
);
INSERT INTO bcc_script.plan_counter VALUES ('plan', 0), ('task', 0), ('deletion', 0);
