-- What a process can ask the owner of a lease besides to give it up: to end the turn that runs, and whether one runs.

ALTER TABLE bcc_script.lease
    ADD COLUMN is_interrupted boolean NOT NULL DEFAULT false,
    -- Whether another process wants the session only if no turn runs.
    ADD COLUMN is_wanted_if_idle boolean NOT NULL DEFAULT false,
    -- When the owner last said that a turn runs.
    ADD COLUMN busy_at timestamptz;

DROP INDEX bcc_script.lease_wanted;
CREATE INDEX lease_wanted ON bcc_script.lease (process) WHERE is_wanted OR is_wanted_if_idle;

CREATE OR REPLACE FUNCTION bcc_script.take_lease(
    p_id bytea, p_session text, p_process bigint, p_token bigint, p_holder text, OUT is_taken boolean, OUT holder text
) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO bcc_script.lease AS l (session_sha256, session, process, token, holder, is_wanted)
    VALUES (p_id, p_session, p_process, p_token, p_holder, false)
    ON CONFLICT (session_sha256) DO UPDATE SET process = excluded.process, token = excluded.token, holder = excluded.holder,
        is_wanted = false, is_interrupted = false, is_wanted_if_idle = false, busy_at = NULL
    -- The process itself has already given up the one it had.
    WHERE l.process = excluded.process OR NOT EXISTS (
        SELECT FROM bcc_script.process AS p WHERE p.id = l.process AND p.expires_at > clock_timestamp()
    );
    is_taken := FOUND;
    IF NOT is_taken THEN
        SELECT l.holder INTO holder FROM bcc_script.lease AS l WHERE l.session_sha256 = p_id;
    END IF;
END $$;
