-- Commits of a session that are written together: one call, and each row once, as the last of them leaves it. Each commit keeps its revision.

-- As before, but requests are answered at the time of the commit that answers them.
CREATE OR REPLACE FUNCTION bcc_script.write_rows(
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
        UPDATE bcc_script.request SET answered_at = coalesce(p_rows ->> 'answered_at', p_rows ->> 'updated_at')
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

-- `p_rows` are the rows as the last of `p_count` commits leaves them, `p_keys` the keys of the rows that the store may have, each with the
-- number (`n`, from 0) of the commit that writes it first. `p_heads` are the heads that the commits after the first replace, `p_replaced`
-- the rows that a commit replaces and an earlier one of them has written.
CREATE FUNCTION bcc_script.commit_together(
    p_id bytea, p_token bigint, p_commit bigint, p_last_seq bigint, p_last_message bigint, p_count bigint, p_rows jsonb,
    p_keys jsonb, p_heads jsonb, p_replaced jsonb, p_at text[], p_kind text[], p_body text[], p_sha256 text[], p_text text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_session bigint;
    v_user text;
    v_head record;
    v_expected bigint := (p_rows ->> 'revision')::bigint;
BEGIN
    SELECT s.key, s.user_name INTO v_session, v_user FROM bcc_script.session AS s WHERE s.id_sha256 = p_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'BC001', MESSAGE = 'no session';
    END IF;
    SELECT * INTO v_head FROM bcc_script.head AS h WHERE h.session = v_session FOR UPDATE;
    -- Sent again, because the connection broke before the answer arrived.
    IF v_head.commit_number = p_commit AND v_head.revision = v_expected + p_count THEN
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
    IF p_last_seq <> v_head.last_seq THEN
        RAISE EXCEPTION USING ERRCODE = 'BC003', MESSAGE = 'gap', DETAIL = format('event %s %s', v_head.last_seq + 1, p_last_seq + 1);
    END IF;
    IF p_last_message IS NOT NULL AND p_last_message <> v_head.last_message THEN
        RAISE EXCEPTION USING ERRCODE = 'BC003', MESSAGE = 'gap',
            DETAIL = format('message %s %s', v_head.last_message + 1, p_last_message + 1);
    END IF;
    INSERT INTO bcc_script.replaced_head
    VALUES (v_session, v_head.revision, v_head.status, v_head.answers, v_head.last_seq, v_head.location, v_head.head);
    INSERT INTO bcc_script.replaced_head
    SELECT v_session, v_expected + n, status, answers, coalesce(last_seq, v_head.last_seq), location, head
    FROM jsonb_to_recordset(p_heads) AS x(n bigint, status text, answers bigint, last_seq bigint, location text, head text);
    INSERT INTO bcc_script.replaced
    SELECT v_session, v_expected + x.n, jsonb_build_object('frame', x.key),
        (SELECT jsonb_build_object('frame', to_jsonb(f)) FROM bcc_script.frame AS f
            WHERE f.session = v_session AND f.key = x.key)
    FROM jsonb_to_recordset(p_keys -> 'frames') AS x(key text, n bigint)
    UNION ALL
    SELECT v_session, v_expected + x.n,
        jsonb_build_object('variable', jsonb_build_object('scope', scope, 'path', path, 'name', name)),
        (SELECT jsonb_build_object('variable', to_jsonb(v)) FROM bcc_script.variable AS v
            WHERE v.session = v_session AND v.scope = x.scope AND v.path = x.path AND v.name = x.name)
    FROM jsonb_to_recordset(p_keys -> 'variables') AS x(scope text, path text, name text, n bigint)
    UNION ALL
    SELECT v_session, v_expected + x.n, jsonb_build_object('counter', x.key),
        (SELECT jsonb_build_object('counter', to_jsonb(c)) FROM bcc_script.counter AS c
            WHERE c.session = v_session AND c.name = x.key)
    FROM jsonb_to_recordset(p_keys -> 'counters') AS x(key text, n bigint)
    UNION ALL
    SELECT v_session, v_expected + x.n, jsonb_build_object('request', x.key),
        (SELECT jsonb_build_object('request', to_jsonb(r)) FROM bcc_script.request AS r
            WHERE r.session = v_session AND r.id = x.key)
    FROM jsonb_to_recordset(p_keys -> 'requests') AS x(key text, n bigint)
    UNION ALL
    -- Messages are only appended.
    SELECT v_session, v_expected + x.n, jsonb_build_object('message', x.key), NULL
    FROM jsonb_to_recordset(p_keys -> 'messages') AS x(key bigint, n bigint)
    UNION ALL
    SELECT v_session, v_expected + x.n, x.key, nullif(x.row, 'null'::jsonb)
    FROM jsonb_to_recordset(p_replaced) AS x(n bigint, key jsonb, row jsonb);
    PERFORM bcc_script.write_rows(v_session, v_user, p_rows, p_sha256, p_text);
    INSERT INTO bcc_script.journal
    SELECT v_session, v_head.last_seq + place, at, kind, body
    FROM unnest(p_at, p_kind, p_body) WITH ORDINALITY AS x(at, kind, body, place);
    UPDATE bcc_script.head SET commit_number = p_commit, revision = v_expected + p_count,
        last_seq = v_head.last_seq + cardinality(p_at),
        last_message = v_head.last_message + coalesce(jsonb_array_length(p_rows -> 'messages'), 0),
        answers = (p_rows ->> 'answers')::bigint, status = p_rows ->> 'status', updated_at = p_rows ->> 'updated_at',
        period = left(p_rows ->> 'updated_at', 15), location = p_rows ->> 'location', head = p_rows ->> 'head'
    WHERE session = v_session;
END $$;

-- Long texts are compressed by the server; this method takes a fraction of the time of the other one. Not every server has it.
DO $$ BEGIN
    ALTER TABLE bcc_script.journal ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR syntax_error THEN NULL;
END $$;
