-- Links, by which people begin conversations, and the conversations that began.

CREATE TABLE bcc_script.link (
    id text PRIMARY KEY,
    token_sha256 text NOT NULL UNIQUE,
    created_at text NOT NULL,
    expires_at text,
    revoked_at text,
    body text NOT NULL
);

CREATE TABLE bcc_script.talk (
    link text NOT NULL REFERENCES bcc_script.link (id),
    secret_sha256 text NOT NULL,
    session text NOT NULL,
    began_at text NOT NULL,
    consent text,
    is_started boolean NOT NULL,
    withdrawn_at text,
    PRIMARY KEY (link, secret_sha256)
);

-- Keeps that a conversation begins, and says what became of it. The row of the link is locked, so that of two attempts the second one sees
-- the first.
CREATE FUNCTION bcc_script.start_talk(
    p_link text, p_secret text, p_session text, p_began_at text, p_consent text, p_started boolean, p_withdrawn_at text, p_limit bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_revoked_at text;
BEGIN
    SELECT revoked_at INTO v_revoked_at FROM bcc_script.link WHERE id = p_link FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'closed';
    END IF;
    IF EXISTS (SELECT FROM bcc_script.talk WHERE link = p_link AND secret_sha256 = p_secret) THEN
        RETURN 'repeated';
    END IF;
    IF v_revoked_at IS NOT NULL THEN
        RETURN 'closed';
    END IF;
    IF (SELECT count(*) FROM bcc_script.talk WHERE link = p_link) >= p_limit THEN
        RETURN 'used_up';
    END IF;
    INSERT INTO bcc_script.talk
    VALUES (p_link, p_secret, p_session, p_began_at, p_consent, p_started, p_withdrawn_at);
    RETURN 'begun';
END $$;
