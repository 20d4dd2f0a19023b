-- One call for one commit: one way to the server and back, and one transaction. An exception takes everything back; its code says what is
-- wrong (`error.rs`), its detail which numbers. What is passed has no text in a message, which the server would log.

-- Keeps the rows that a commit is about to replace.
CREATE FUNCTION bcc_script.keep_replaced(p_session bigint, p_revision bigint, p_rows jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_rows ?| ARRAY['frames_put', 'frames_removed'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision, jsonb_build_object('frame', changed.key),
            (SELECT jsonb_build_object('frame', to_jsonb(f)) FROM bcc_script.frame AS f
                WHERE f.session = p_session AND f.key = changed.key)
        FROM (
            SELECT value ->> 'key' AS key FROM jsonb_array_elements(p_rows -> 'frames_put')
            UNION SELECT jsonb_array_elements_text(p_rows -> 'frames_removed')
        ) AS changed;
    END IF;
    IF p_rows ?| ARRAY['variables_put', 'variables_removed'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision,
            jsonb_build_object('variable', jsonb_build_object('scope', scope, 'path', path, 'name', name)),
            (SELECT jsonb_build_object('variable', to_jsonb(v)) FROM bcc_script.variable AS v
                WHERE v.session = p_session AND v.scope = changed.scope AND v.path = changed.path AND v.name = changed.name)
        FROM (
            SELECT scope, path, name FROM jsonb_to_recordset(p_rows -> 'variables_put') AS x(scope text, path text, name text)
            UNION
            SELECT scope, path, name FROM jsonb_to_recordset(p_rows -> 'variables_removed') AS x(scope text, path text, name text)
        ) AS changed;
    END IF;
    IF p_rows ?| ARRAY['counters_put', 'counters_removed'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision, jsonb_build_object('counter', changed.name),
            (SELECT jsonb_build_object('counter', to_jsonb(c)) FROM bcc_script.counter AS c
                WHERE c.session = p_session AND c.name = changed.name)
        FROM (
            SELECT value ->> 'name' AS name FROM jsonb_array_elements(p_rows -> 'counters_put')
            UNION SELECT jsonb_array_elements_text(p_rows -> 'counters_removed')
        ) AS changed;
    END IF;
    IF p_rows ?| ARRAY['messages', 'messages_kept'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision, jsonb_build_object('message', changed.number),
            (SELECT jsonb_build_object('message', to_jsonb(m)) FROM bcc_script.message AS m
                WHERE m.session = p_session AND m.number = changed.number)
        FROM (
            SELECT (value ->> 'number')::bigint AS number FROM jsonb_array_elements(p_rows -> 'messages')
            UNION
            SELECT number FROM bcc_script.message
            WHERE session = p_session AND number > (p_rows ->> 'messages_kept')::bigint
        ) AS changed;
    END IF;
    IF p_rows ?| ARRAY['cells_put', 'cells_kept'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision, jsonb_build_object('cell', changed.number),
            (SELECT jsonb_build_object(
                    CASE WHEN c.number > (p_rows ->> 'cells_kept')::bigint THEN 'removed_cell' ELSE 'cell' END, to_jsonb(c))
                FROM bcc_script.cell AS c WHERE c.session = p_session AND c.number = changed.number)
        FROM (
            SELECT (value ->> 'number')::bigint AS number FROM jsonb_array_elements(p_rows -> 'cells_put')
            UNION
            SELECT number FROM bcc_script.cell WHERE session = p_session AND number > (p_rows ->> 'cells_kept')::bigint
        ) AS changed;
    END IF;
    IF p_rows ?| ARRAY['requests_put', 'requests_removed', 'requests_answered'] THEN
        INSERT INTO bcc_script.replaced
        SELECT p_session, p_revision, jsonb_build_object('request', changed.id),
            (SELECT jsonb_build_object('request', to_jsonb(r)) FROM bcc_script.request AS r
                WHERE r.session = p_session AND r.id = changed.id)
        FROM (
            SELECT value ->> 'id' AS id FROM jsonb_array_elements(p_rows -> 'requests_put')
            UNION SELECT jsonb_array_elements_text(p_rows -> 'requests_removed')
            UNION SELECT jsonb_array_elements_text(p_rows -> 'requests_answered')
        ) AS changed;
    END IF;
END $$;

-- Removes and writes cells, and returns the number of the last one.
CREATE FUNCTION bcc_script.write_cells(p_session bigint, p_last bigint, p_rows jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_cell record;
    v_last bigint := p_last;
    v_written bigint;
BEGIN
    IF p_rows ? 'cells_kept' THEN
        v_last := least(v_last, (p_rows ->> 'cells_kept')::bigint);
        DELETE FROM bcc_script.cell WHERE session = p_session AND number > v_last;
    END IF;
    FOR v_cell IN
        SELECT * FROM jsonb_to_recordset(p_rows -> 'cells_put') AS x(number bigint, id text, body text)
    LOOP
        IF v_cell.number < 1 OR v_cell.number > v_last + 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'BC003', MESSAGE = 'gap', DETAIL = format('cell %s %s', v_last + 1, v_cell.number);
        END IF;
        IF EXISTS (
            SELECT FROM bcc_script.cell WHERE session = p_session AND md5(id) = md5(v_cell.id) AND number <> v_cell.number
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'BC005', MESSAGE = 'cell id', DETAIL = v_cell.number;
        END IF;
        INSERT INTO bcc_script.cell AS c VALUES (p_session, v_cell.number, v_cell.id, v_cell.body)
        ON CONFLICT (session, number) DO UPDATE SET body = excluded.body WHERE c.id = excluded.id;
        GET DIAGNOSTICS v_written = ROW_COUNT;
        IF v_written = 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'BC005', MESSAGE = 'cell id', DETAIL = v_cell.number;
        END IF;
        v_last := greatest(v_last, v_cell.number);
    END LOOP;
    RETURN v_last;
END $$;

-- Writes the rows of a commit that have no number, and messages.
CREATE FUNCTION bcc_script.write_rows(
    p_session bigint, p_user text, p_rows jsonb, p_sha256 text[], p_text text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_written bigint;
BEGIN
    IF p_rows ? 'variables_removed' THEN
        DELETE FROM bcc_script.variable AS v
        USING jsonb_to_recordset(p_rows -> 'variables_removed') AS x(scope text, path text, name text)
        WHERE v.session = p_session AND v.scope = x.scope AND v.path = x.path AND v.name = x.name;
    END IF;
    IF p_rows ? 'variables_put' THEN
        INSERT INTO bcc_script.variable
        SELECT p_session, scope, path, name, value, source, round, at, sensitive
        FROM jsonb_to_recordset(p_rows -> 'variables_put')
            AS x(scope text, path text, name text, value text, source text, round bigint, at text, sensitive boolean)
        ON CONFLICT (session, scope, path, name) DO UPDATE SET value = excluded.value, source = excluded.source,
            round = excluded.round, at = excluded.at, sensitive = excluded.sensitive;
    END IF;
    -- The caller has sorted them, so that two sessions of one user do not wait for each other.
    IF p_rows ? 'user_variables_put' THEN
        INSERT INTO bcc_script.user_variable
        SELECT p_user, scope, path, name, value, source, round, at, sensitive
        FROM jsonb_to_recordset(p_rows -> 'user_variables_put')
            AS x(scope text, path text, name text, value text, source text, round bigint, at text, sensitive boolean)
        ON CONFLICT (user_name, scope, path, name) DO UPDATE SET value = excluded.value, source = excluded.source,
            round = excluded.round, at = excluded.at, sensitive = excluded.sensitive;
    END IF;
    IF p_rows ? 'frames_removed' THEN
        DELETE FROM bcc_script.frame
        WHERE session = p_session AND key IN (SELECT jsonb_array_elements_text(p_rows -> 'frames_removed'));
    END IF;
    IF p_rows ? 'frames_put' THEN
        INSERT INTO bcc_script.frame
        SELECT p_session, key, state FROM jsonb_to_recordset(p_rows -> 'frames_put') AS x(key text, state text)
        ON CONFLICT (session, key) DO UPDATE SET state = excluded.state;
    END IF;
    IF p_rows ? 'counters_removed' THEN
        DELETE FROM bcc_script.counter
        WHERE session = p_session AND name IN (SELECT jsonb_array_elements_text(p_rows -> 'counters_removed'));
    END IF;
    IF p_rows ? 'counters_put' THEN
        INSERT INTO bcc_script.counter
        SELECT p_session, name, count FROM jsonb_to_recordset(p_rows -> 'counters_put') AS x(name text, count bigint)
        ON CONFLICT (session, name) DO UPDATE SET count = excluded.count;
    END IF;
    IF cardinality(p_sha256) > 0 THEN
        INSERT INTO bcc_script.stored_text
        SELECT p_session, sha256, text FROM unnest(p_sha256, p_text) AS x(sha256, text)
        ON CONFLICT DO NOTHING;
    END IF;
    IF p_rows ? 'messages_kept' THEN
        DELETE FROM bcc_script.message WHERE session = p_session AND number > (p_rows ->> 'messages_kept')::bigint;
    END IF;
    IF p_rows ? 'messages' THEN
        INSERT INTO bcc_script.message
        SELECT p_session, number, role, text, at, action_id, round, message_id
        FROM jsonb_to_recordset(p_rows -> 'messages')
            AS x(number bigint, role text, text text, at text, action_id text, round bigint, message_id text);
    END IF;
    IF p_rows ? 'requests_removed' THEN
        DELETE FROM bcc_script.request
        WHERE session = p_session AND id IN (SELECT jsonb_array_elements_text(p_rows -> 'requests_removed'));
    END IF;
    IF p_rows ? 'requests_answered' THEN
        UPDATE bcc_script.request SET answered_at = p_rows ->> 'updated_at'
        WHERE session = p_session AND id IN (SELECT jsonb_array_elements_text(p_rows -> 'requests_answered'))
            AND answered_at IS NULL;
    END IF;
    IF p_rows ? 'requests_put' THEN
        INSERT INTO bcc_script.request
        SELECT p_session, id, kind, prompt, schema, decisions, approvers, due_at, opened_at, answered_at
        FROM jsonb_to_recordset(p_rows -> 'requests_put') AS x(id text, kind text, prompt text, schema text, decisions text,
            approvers text, due_at text, opened_at text, answered_at text)
        ON CONFLICT (session, id) DO UPDATE SET kind = excluded.kind, prompt = excluded.prompt, schema = excluded.schema,
            decisions = excluded.decisions, approvers = excluded.approvers, due_at = excluded.due_at,
            opened_at = excluded.opened_at, answered_at = excluded.answered_at, claimed_until = NULL;
    END IF;
    IF p_rows ? 'answer_ids' THEN
        INSERT INTO bcc_script.answer SELECT p_session, jsonb_array_elements_text(p_rows -> 'answer_ids')
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_written = ROW_COUNT;
        IF v_written <> jsonb_array_length(p_rows -> 'answer_ids') THEN
            RAISE EXCEPTION USING ERRCODE = 'BC004', MESSAGE = 'answer';
        END IF;
    END IF;
END $$;

CREATE FUNCTION bcc_script.commit_session(
    p_id bytea, p_token bigint, p_commit bigint, p_last_seq bigint, p_last_message bigint, p_rows jsonb,
    p_at text[], p_kind text[], p_body text[], p_sha256 text[], p_text text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_session bigint;
    v_user text;
    v_head record;
    v_expected bigint := (p_rows ->> 'revision')::bigint;
    v_last_message bigint;
    v_last_cell bigint;
BEGIN
    SELECT s.key, s.user_name INTO v_session, v_user FROM bcc_script.session AS s WHERE s.id_sha256 = p_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC001', MESSAGE = 'no session';
    END IF;
    SELECT * INTO v_head FROM bcc_script.head AS h WHERE h.session = v_session FOR UPDATE;
    -- Sent again, because the connection broke before the answer arrived.
    IF v_head.commit_number = p_commit AND v_head.revision = v_expected + 1 THEN
        RETURN;
    END IF;
    IF p_token IS NOT NULL
        AND NOT EXISTS (SELECT FROM bcc_script.lease AS l WHERE l.session_sha256 = p_id AND l.token = p_token)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'BC007', MESSAGE = 'lease';
    END IF;
    IF v_head.revision <> v_expected THEN
        RAISE EXCEPTION USING ERRCODE = 'BC002', MESSAGE = 'revision', DETAIL = v_head.revision;
    END IF;
    -- The caller has checked that its events and messages have no gaps.
    IF p_last_seq IS NOT NULL AND p_last_seq <> v_head.last_seq THEN
        RAISE EXCEPTION USING ERRCODE = 'BC003', MESSAGE = 'gap', DETAIL = format('event %s %s', v_head.last_seq + 1, p_last_seq + 1);
    END IF;
    v_last_message := least(v_head.last_message, coalesce((p_rows ->> 'messages_kept')::bigint, v_head.last_message));
    IF p_last_message IS NOT NULL AND p_last_message <> v_last_message THEN
        RAISE EXCEPTION USING ERRCODE = 'BC003', MESSAGE = 'gap',
            DETAIL = format('message %s %s', v_last_message + 1, p_last_message + 1);
    END IF;
    INSERT INTO bcc_script.replaced_head
    VALUES (v_session, v_head.revision, v_head.status, v_head.answers, v_head.last_seq, v_head.location, v_head.head);
    PERFORM bcc_script.keep_replaced(v_session, v_head.revision, p_rows);
    PERFORM bcc_script.write_rows(v_session, v_user, p_rows, p_sha256, p_text);
    v_last_cell := v_head.last_cell;
    IF p_rows ?| ARRAY['cells_put', 'cells_kept'] THEN
        v_last_cell := bcc_script.write_cells(v_session, v_last_cell, p_rows);
    END IF;
    INSERT INTO bcc_script.journal
    SELECT v_session, v_head.last_seq + place, at, kind, body
    FROM unnest(p_at, p_kind, p_body) WITH ORDINALITY AS x(at, kind, body, place);
    UPDATE bcc_script.head SET commit_number = p_commit, revision = v_head.revision + 1,
        last_seq = v_head.last_seq + cardinality(p_at),
        last_message = v_last_message + coalesce(jsonb_array_length(p_rows -> 'messages'), 0), last_cell = v_last_cell,
        answers = (p_rows ->> 'answers')::bigint, status = p_rows ->> 'status', updated_at = p_rows ->> 'updated_at',
        period = left(p_rows ->> 'updated_at', 15), location = p_rows ->> 'location', head = p_rows ->> 'head'
    WHERE session = v_session;
END $$;

CREATE FUNCTION bcc_script.create_session(
    p_id bytea, p_commit bigint, p_session jsonb, p_document text[], p_document_text text[], p_rows jsonb,
    p_at text[], p_kind text[], p_body text[], p_sha256 text[], p_text text[],
    p_revision bigint, p_heads jsonb, p_replaced jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_session bigint;
    v_last_cell bigint;
BEGIN
    INSERT INTO bcc_script.session
        (id_sha256, id, user_name, script, script_name, script_sha256, started_at, settings, manifest)
    VALUES (p_id, p_session ->> 'id', p_session ->> 'user', p_session ->> 'script', p_session ->> 'script_name',
        p_session ->> 'script_sha256', p_session ->> 'started_at', p_session ->> 'settings', p_session ->> 'manifest')
    ON CONFLICT DO NOTHING RETURNING key INTO v_session;
    IF v_session IS NULL THEN
        -- Sent again, as in commit_session.
        IF EXISTS (SELECT FROM bcc_script.head AS h JOIN bcc_script.session AS s ON s.key = h.session
            WHERE s.id_sha256 = p_id AND h.commit_number = p_commit)
        THEN
            RETURN;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'BC006', MESSAGE = 'session exists';
    END IF;
    -- Sorted, so that two processes that write the same documents do not wait for each other.
    INSERT INTO bcc_script.document
    SELECT DISTINCT ON (sha256) sha256, text FROM unnest(p_document, p_document_text) AS x(sha256, text) ORDER BY sha256
    ON CONFLICT DO NOTHING;
    INSERT INTO bcc_script.session_document SELECT DISTINCT v_session, sha256 FROM unnest(p_document) AS x(sha256);
    PERFORM bcc_script.write_rows(v_session, p_session ->> 'user', p_rows, p_sha256, p_text);
    v_last_cell := bcc_script.write_cells(v_session, 0, p_rows);
    INSERT INTO bcc_script.journal
    SELECT v_session, place, at, kind, body FROM unnest(p_at, p_kind, p_body) WITH ORDINALITY AS x(at, kind, body, place);
    INSERT INTO bcc_script.head
    VALUES (v_session, p_commit, p_revision, cardinality(p_at), coalesce(jsonb_array_length(p_rows -> 'messages'), 0), v_last_cell,
        (p_rows ->> 'answers')::bigint, p_rows ->> 'status', p_rows ->> 'updated_at', left(p_rows ->> 'updated_at', 15),
        p_rows ->> 'location', p_rows ->> 'head');
    -- Of a copy.
    INSERT INTO bcc_script.replaced_head
    SELECT v_session, revision, status, answers, last_seq, location, head
    FROM jsonb_to_recordset(p_heads)
        AS x(revision bigint, status text, answers bigint, last_seq bigint, location text, head text);
    INSERT INTO bcc_script.replaced
    SELECT v_session, revision, key, nullif(row, 'null'::jsonb)
    FROM jsonb_to_recordset(p_replaced) AS x(revision bigint, key jsonb, row jsonb);
END $$;

-- Deletes a session and the documents that no other one needs; with a time, only if its last change was before.
CREATE FUNCTION bcc_script.delete_session(p_id bytea, p_before text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_session bigint;
    v_documents text[];
BEGIN
    SELECT s.key INTO v_session FROM bcc_script.session AS s JOIN bcc_script.head AS h ON h.session = s.key
    WHERE s.id_sha256 = p_id AND (p_before IS NULL OR rtrim(h.updated_at, 'Z') < rtrim(p_before, 'Z')) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT array_agg(document ORDER BY document) INTO v_documents
    FROM bcc_script.session_document WHERE session = v_session;
    DELETE FROM bcc_script.session WHERE key = v_session;
    DELETE FROM bcc_script.document AS d
    WHERE d.sha256 = ANY (v_documents)
        AND NOT EXISTS (SELECT FROM bcc_script.session_document AS other WHERE other.document = d.sha256);
    RETURN true;
END $$;

-- Advances a counter, and returns its value before.
CREATE FUNCTION bcc_script.advance(p_name text, p_by bigint) RETURNS bigint LANGUAGE sql AS $$
    UPDATE bcc_script.plan_counter SET last = last + p_by WHERE name = p_name RETURNING last - p_by;
$$;

-- Keeps the result of an edit of a plan, and the newest thousand of them.
CREATE FUNCTION bcc_script.keep_edit(p_plan bigint, p_key text, p_number bigint, p_result text, p_kept bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO bcc_script.plan_edit VALUES (p_plan, p_number, p_key, p_result);
    DELETE FROM bcc_script.plan_edit WHERE plan = p_plan AND number <= p_number - p_kept;
END $$;

-- Writes the tasks of a plan: three lists of the same length, and the ranks.
CREATE FUNCTION bcc_script.put_tasks(p_plan bigint, p_id bigint[], p_parent bigint[], p_rank bigint[], p_body text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_task record;
BEGIN
    SELECT t.id, t.plan INTO v_task FROM bcc_script.plan_task AS t WHERE t.id = ANY (p_id) AND t.plan <> p_plan LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC013', MESSAGE = 'task exists', DETAIL = format('%s %s', v_task.id, v_task.plan);
    END IF;
    INSERT INTO bcc_script.plan_task
    SELECT id, p_plan, parent, rank, body FROM unnest(p_id, p_parent, p_rank, p_body) AS x(id, parent, rank, body)
    ON CONFLICT (id) DO UPDATE SET parent = excluded.parent, rank = excluded.rank, body = excluded.body;
    UPDATE bcc_script.plan_counter SET last = greatest(last, (SELECT max(id) FROM unnest(p_id) AS x(id)))
    WHERE name = 'task' AND cardinality(p_id) > 0;
END $$;

-- Each of the next three returns the result of an edit with the same key that was made before.
CREATE FUNCTION bcc_script.create_plan(
    p_plan bigint, p_user text, p_status text, p_title text, p_created_at text, p_updated_at text, p_body text,
    p_id bigint[], p_parent bigint[], p_rank bigint[], p_task_body text[], p_key text, p_result text, p_kept bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_result text;
BEGIN
    PERFORM pg_advisory_xact_lock(7165, hashtext(p_key));
    SELECT result INTO v_result FROM bcc_script.plan_edit WHERE key = p_key;
    IF FOUND THEN
        RETURN v_result;
    END IF;
    -- Whoever makes plans waits for each other here.
    UPDATE bcc_script.plan_counter SET last = greatest(last, p_plan) WHERE name = 'plan';
    INSERT INTO bcc_script.plan VALUES (p_plan, p_user, 1, p_status, p_title, p_created_at, p_updated_at, p_body)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC011', MESSAGE = 'plan exists';
    END IF;
    PERFORM bcc_script.put_tasks(p_plan, p_id, p_parent, p_rank, p_task_body);
    PERFORM bcc_script.keep_edit(p_plan, p_key, 1, p_result, p_kept);
    RETURN NULL;
END $$;

-- Creates a plan as it was copied.
CREATE FUNCTION bcc_script.put_plan(
    p_plan bigint, p_user text, p_revision bigint, p_status text, p_title text, p_created_at text, p_updated_at text,
    p_body text, p_id bigint[], p_parent bigint[], p_rank bigint[], p_task_body text[],
    p_number bigint[], p_key text[], p_result text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bcc_script.plan_counter SET last = greatest(last, p_plan) WHERE name = 'plan';
    INSERT INTO bcc_script.plan VALUES (p_plan, p_user, p_revision, p_status, p_title, p_created_at, p_updated_at, p_body)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC011', MESSAGE = 'plan exists';
    END IF;
    PERFORM bcc_script.put_tasks(p_plan, p_id, p_parent, p_rank, p_task_body);
    INSERT INTO bcc_script.plan_edit
    SELECT p_plan, number, key, result FROM unnest(p_number, p_key, p_result) AS x(number, key, result);
END $$;

CREATE FUNCTION bcc_script.edit_plan(
    p_plan bigint, p_revision bigint, p_status text, p_title text, p_updated_at text, p_body text,
    p_removed bigint[], p_id bigint[], p_parent bigint[], p_rank bigint[], p_task_body text[],
    p_key text, p_result text, p_kept bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_result text;
    v_revision bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(7165, hashtext(p_key));
    SELECT result INTO v_result FROM bcc_script.plan_edit WHERE key = p_key;
    IF FOUND THEN
        RETURN v_result;
    END IF;
    SELECT revision INTO v_revision FROM bcc_script.plan WHERE id = p_plan FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC010', MESSAGE = 'no plan';
    END IF;
    IF v_revision <> p_revision THEN
        RAISE EXCEPTION USING ERRCODE = 'BC012', MESSAGE = 'revision', DETAIL = v_revision;
    END IF;
    UPDATE bcc_script.plan SET revision = v_revision + 1, status = p_status, title = p_title, updated_at = p_updated_at,
        body = p_body WHERE id = p_plan;
    DELETE FROM bcc_script.plan_task WHERE plan = p_plan AND id = ANY (p_removed);
    PERFORM bcc_script.put_tasks(p_plan, p_id, p_parent, p_rank, p_task_body);
    PERFORM bcc_script.keep_edit(p_plan, p_key, v_revision + 1, p_result, p_kept);
    RETURN NULL;
END $$;

-- `is_plan` says whether there was such a plan, or an edit with the key.
CREATE FUNCTION bcc_script.delete_plan(
    p_plan bigint, p_key text, p_result text, p_kept bigint, OUT is_plan boolean, OUT earlier text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7165, hashtext(p_key));
    is_plan := true;
    SELECT result INTO earlier FROM bcc_script.plan_edit WHERE key = p_key;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM bcc_script.plan WHERE id = p_plan FOR UPDATE;
    IF NOT FOUND THEN
        is_plan := false;
        RETURN;
    END IF;
    DELETE FROM bcc_script.plan_task WHERE plan = p_plan;
    DELETE FROM bcc_script.plan WHERE id = p_plan;
    DELETE FROM bcc_script.plan_edit WHERE plan = p_plan;
    -- No plan has the id 0: these are the deletions.
    PERFORM bcc_script.keep_edit(0, p_key, bcc_script.advance('deletion', 1) + 1, p_result, p_kept);
END $$;

-- Gives a session to a process, unless a process that lives runs it. Returns whether it did, and who runs it.
CREATE FUNCTION bcc_script.take_lease(
    p_id bytea, p_session text, p_process bigint, p_token bigint, p_holder text, OUT is_taken boolean, OUT holder text
) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO bcc_script.lease AS l VALUES (p_id, p_session, p_process, p_token, p_holder, false)
    ON CONFLICT (session_sha256) DO UPDATE SET process = excluded.process, token = excluded.token, holder = excluded.holder,
        is_wanted = false
    -- The process itself has already given up the one it had.
    WHERE l.process = excluded.process OR NOT EXISTS (
        SELECT FROM bcc_script.process AS p WHERE p.id = l.process AND p.expires_at > clock_timestamp()
    );
    is_taken := FOUND;
    IF NOT is_taken THEN
        SELECT l.holder INTO holder FROM bcc_script.lease AS l WHERE l.session_sha256 = p_id;
    END IF;
END $$;
