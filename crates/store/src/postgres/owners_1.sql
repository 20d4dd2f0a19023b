-- Whether a process runs one session, as in a terminal, and keeps it when another one asks for it.

ALTER TABLE bcc_script.process ADD COLUMN runs_one boolean NOT NULL DEFAULT false;

-- True for a program that knows layouts up to this one. Fails for a program of an earlier release that was running when the layout changed.
CREATE FUNCTION bcc_script.knows_layout(p_known bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_found bigint;
BEGIN
    SELECT layout INTO v_found FROM bcc_script.layout;
    IF v_found > p_known THEN
        RAISE EXCEPTION USING ERRCODE = 'BC008', MESSAGE = 'layout', DETAIL = v_found::text;
    END IF;
    RETURN true;
END $$;
