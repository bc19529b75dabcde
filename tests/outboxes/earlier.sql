-- The table of docs/sql.md before producers counted by themselves, as users have installed it.
CREATE SEQUENCE mqbroker_outbox_seq;

CREATE TABLE mqbroker_outbox_state (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    slot smallint NOT NULL DEFAULT 0,
    asleep boolean NOT NULL DEFAULT true,
    salt uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO mqbroker_outbox_state DEFAULT VALUES;

CREATE FUNCTION mqbroker_outbox_slot() RETURNS smallint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS 'SELECT slot FROM mqbroker_outbox_state';

CREATE TABLE mqbroker_outbox (
    slot smallint NOT NULL DEFAULT mqbroker_outbox_slot(),
    seq bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    topic text NOT NULL,
    body text,
    body_bytes bytea,
    tags text,
    keys text[],
    sharding_key text,
    properties jsonb,
    delay_level integer,
    delay_seconds double precision,
    deliver_at timestamptz,
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (seq, slot),
    CHECK (num_nonnulls(body, body_bytes) = 1),
    CHECK (delay_seconds BETWEEN 0 AND 1e9),
    CHECK (deliver_at BETWEEN '2000-01-01' AND '9999-01-01'),
    CHECK (created_at BETWEEN '2000-01-01' AND '9999-01-01')
) PARTITION BY LIST (slot);
CREATE TABLE mqbroker_outbox_0 PARTITION OF mqbroker_outbox FOR VALUES IN (0);
CREATE TABLE mqbroker_outbox_1 PARTITION OF mqbroker_outbox FOR VALUES IN (1);

CREATE TABLE mqbroker_outbox_refused (
    id uuid, topic text, body text, body_bytes bytea, tags text, keys text[], sharding_key text, properties jsonb,
    delay_level integer, delay_seconds double precision, deliver_at timestamptz, traceparent text,
    created_at timestamptz, reason text NOT NULL, refused_at timestamptz NOT NULL DEFAULT now()
);

CREATE OR REPLACE FUNCTION mqbroker_outbox_lock(topic text, sharding_key text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    key bigint;
BEGIN
    -- Any role may take any advisory lock: without the salt, which writers cannot read, none knows this one.
    SELECT hashtextextended(concat_ws(chr(31), s.salt, $1, $2), 0) INTO STRICT key FROM mqbroker_outbox_state AS s;
    IF pg_try_advisory_xact_lock(key) THEN
        RETURN;
    END IF;
    IF current_setting('lock_timeout') <> '0' THEN
        PERFORM pg_advisory_xact_lock(key);
        RETURN;
    END IF;
    PERFORM set_config('lock_timeout', '30s', true);
    BEGIN
        PERFORM pg_advisory_xact_lock(key);
    EXCEPTION WHEN lock_not_available THEN
        RAISE lock_not_available USING
            MESSAGE = format('another transaction has held the sharding key %s of the topic %s for 30 s', $2, $1),
            HINT = 'Its session is pid ' || coalesce((
                SELECT string_agg(l.pid::text, ', ') FROM pg_locks AS l
                WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                    AND l.classid::bigint = (key >> 32) & 4294967295 AND l.objid::bigint = key & 4294967295
            ), 'unknown') || ': have it commit, or end it by SELECT pg_terminate_backend(pid).';
    END;
    PERFORM set_config('lock_timeout', '0', true);
END
$$;
REVOKE EXECUTE ON FUNCTION mqbroker_outbox_lock(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION mqbroker_outbox_number() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.sharding_key IS NOT NULL THEN
        -- Until the commit: a later transaction of the same key gets the higher number.
        PERFORM mqbroker_outbox_lock(NEW.topic, NEW.sharding_key);
    END IF;
    NEW.seq := nextval('mqbroker_outbox_seq');
    NEW.bytes := octet_length(concat(NEW.topic, NEW.tags, NEW.sharding_key, NEW.traceparent, NEW.keys, NEW.properties))
        + coalesce(octet_length(NEW.body), octet_length(NEW.body_bytes), 0);
    RETURN NEW;
END
$$;
CREATE TRIGGER mqbroker_outbox_number BEFORE INSERT ON mqbroker_outbox
FOR EACH ROW EXECUTE FUNCTION mqbroker_outbox_number();

CREATE OR REPLACE FUNCTION mqbroker_outbox_wake() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    -- Where transactions can be prepared no producer notifies, because those may not: the broker looks by itself.
    IF current_setting('max_prepared_transactions')::integer = 0 AND (SELECT asleep FROM mqbroker_outbox_state) THEN
        PERFORM pg_notify('mqbroker_outbox', '');
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER mqbroker_outbox_wake AFTER INSERT ON mqbroker_outbox
FOR EACH STATEMENT EXECUTE FUNCTION mqbroker_outbox_wake();

CREATE OR REPLACE FUNCTION mqbroker_outbox_clear(emptied smallint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    is_used boolean;
BEGIN
    -- Within a transaction that stays open it would lock the partition against everybody.
    IF NOT has_table_privilege(session_user, 'mqbroker_outbox_state', 'UPDATE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'mqbroker_outbox_clear is for the role of the broker';
    END IF;
    EXECUTE format('LOCK TABLE mqbroker_outbox_%s IN ACCESS EXCLUSIVE MODE NOWAIT', emptied);
    EXECUTE format('SELECT EXISTS (SELECT FROM mqbroker_outbox_%s)', emptied) INTO is_used;
    IF NOT is_used THEN
        EXECUTE format('TRUNCATE mqbroker_outbox_%s', emptied);
    END IF;
    RETURN NOT is_used;
EXCEPTION
    WHEN lock_not_available THEN RETURN false;
END
$$;

CREATE FUNCTION mq_send(
    topic text, body text, tags text DEFAULT NULL, keys text[] DEFAULT NULL, sharding_key text DEFAULT NULL,
    properties jsonb DEFAULT NULL, delay_seconds double precision DEFAULT NULL, id uuid DEFAULT gen_random_uuid()
) RETURNS uuid
LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO mqbroker_outbox (id, topic, body, tags, keys, sharding_key, properties, delay_seconds)
    VALUES ($8, $1, $2, $3, $4, $5, $6, $7)
    RETURNING id
$$;

CREATE FUNCTION mq_send_json(
    topic text, body jsonb, tags text DEFAULT NULL, keys text[] DEFAULT NULL, sharding_key text DEFAULT NULL,
    properties jsonb DEFAULT NULL, delay_seconds double precision DEFAULT NULL, id uuid DEFAULT gen_random_uuid()
) RETURNS uuid
LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT mq_send($1, $2::text, $3, $4, $5, $6, $7, $8)
$$;
