-- Commits of a session that are written together: one call, and each row once, as the last of them leaves it. Each commit keeps its revision.

-- `p_rows` are the rows as the last of `p_count` commits leaves them, `p_keys` the keys of the rows that the store may have, each with the
-- number (`n`, from 0) of the commit that writes it first. `answered` are the requests that one of them answers, at `answered_at`. `p_heads` are the heads that the commits after the first replace, `p_replaced`
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
    IF p_rows ? 'answered' THEN
        -- Before the other rows: a request that is removed or put as well is what these leave.
        UPDATE bcc_script.request SET answered_at = p_rows ->> 'answered_at'
        WHERE session = v_session AND id IN (SELECT jsonb_array_elements_text(p_rows -> 'answered')) AND answered_at IS NULL;
    END IF;
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
