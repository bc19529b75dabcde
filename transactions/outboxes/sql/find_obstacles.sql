-- In a source: find the obstacles that keep the role of this session from draining the outbox of a schema, each with
-- the statement that corrects it and whether it may pass by itself. The tables are found by name and compared with
-- docs/sql.md, because a table that the role sees only in part, or that producers do not write to, looks empty. Reads
-- only catalogs, so that a missing right is a row of the result and not an error.
WITH expected_columns (relation, columns) AS (
    VALUES
    (
        'mqbroker_outbox',
        ARRAY[
            'slot smallint', 'seq bigint', 'id uuid', 'topic text', 'body text', 'body_bytes bytea',
            'tags text', 'keys text[]', 'sharding_key text', 'properties jsonb', 'delay_level integer',
            'delay_seconds double precision', 'deliver_at timestamp with time zone', 'traceparent text',
            'created_at timestamp with time zone'
        ]
    ),
    (
        'mqbroker_outbox_refused',
        ARRAY[
            'id uuid', 'topic text', 'body text', 'body_bytes bytea', 'tags text', 'keys text[]', 'sharding_key text',
            'properties jsonb', 'delay_level integer', 'delay_seconds double precision',
            'deliver_at timestamp with time zone', 'traceparent text', 'created_at timestamp with time zone',
            'reason text', 'refused_at timestamp with time zone'
        ]
    ),
    ('mqbroker_outbox_state', ARRAY['single boolean', 'slot smallint', 'asleep boolean'])
),

expected_rights (relation, rights) AS (
    VALUES
    ('mqbroker_outbox', ARRAY['SELECT', 'DELETE']),
    ('mqbroker_outbox_refused', ARRAY['INSERT']),
    ('mqbroker_outbox_state', ARRAY['SELECT', 'UPDATE']), ('mqbroker_outbox_awake', ARRAY['SELECT', 'UPDATE'])
),

expected_kinds (relation, kind) AS (
    VALUES
    ('mqbroker_outbox', 'p'), ('mqbroker_outbox_0', 'r'), ('mqbroker_outbox_1', 'r'),
    ('mqbroker_outbox_refused', 'r'), ('mqbroker_outbox_state', 'r'), ('mqbroker_outbox_awake', 'S')
),

found AS (
    SELECT
        k.relation,
        k.kind,
        c.oid,
        c.relkind,
        c.relpersistence
    FROM expected_kinds AS k
    LEFT JOIN pg_namespace AS n ON n.nspname = %(schema)s
    LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = k.relation
),

functions AS (
    SELECT
        p.oid,
        p.oid::regprocedure::text AS signature,
        (SELECT substr(s.setting, 13) FROM unnest(p.proconfig) AS s (setting) WHERE s.setting LIKE 'search\_path=%%') AS path
    FROM pg_proc AS p
    INNER JOIN pg_namespace AS n ON p.pronamespace = n.oid
    WHERE n.nspname = %(schema)s AND (p.proname IN ('mq_send', 'mq_send_json') OR p.proname LIKE 'mqbroker\_outbox\_%%')
),

-- The table that a function finds by its name: in the first schema of its path that has one.
paths AS (
    SELECT
        f.signature,
        f.path,
        (
            SELECT n.nspname
            FROM unnest(string_to_array(f.path, ',')) WITH ORDINALITY AS e (entry, place)
            INNER JOIN pg_namespace AS n
                ON
                    n.nspname = btrim(e.entry, ' "')
                    OR (btrim(e.entry, ' "') = '$user' AND EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = n.nspname))
            INNER JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'mqbroker_outbox'
            ORDER BY e.place, n.nspname = %(schema)s
            LIMIT 1
        ) AS leads_to
    FROM functions AS f
),

obstacles (place, passes, obstacle, mend) AS (
    SELECT
        1,
        false,
        format('the server is PostgreSQL %%s', current_setting('server_version')),
        'use PostgreSQL 13 or later'
    WHERE current_setting('server_version_num')::integer < 130000

    UNION ALL
    SELECT
        2,
        false,
        format('the encoding of the database is %%s, which has no certain way to UTF-8', current_setting('server_encoding')),
        'move the outbox to a database with ENCODING ''UTF8'''
    WHERE current_setting('server_encoding') IN ('SQL_ASCII', 'MULE_INTERNAL')

    UNION ALL
    SELECT
        3,
        true,
        'the server is a standby, where nothing can be deleted',
        'promote it, or name the primary in url, with target_session_attrs=read-write'
    WHERE pg_is_in_recovery()

    UNION ALL
    SELECT
        4,
        false,
        format('schema "%%s" does not exist', %(schema)s::text),
        'make the outbox there by the statements of docs/sql.md, or give another schema'
    WHERE NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = %(schema)s)

    UNION ALL
    SELECT
        5,
        false,
        format('the role %%I may not use the schema %%I', current_user, n.nspname),
        format('GRANT USAGE ON SCHEMA %%I TO %%I', n.nspname, current_user)
    FROM pg_namespace AS n
    WHERE n.nspname = %(schema)s AND NOT has_schema_privilege(n.oid, 'USAGE')

    UNION ALL
    SELECT
        6,
        false,
        format('relation "%%s" does not exist in the schema %%I', f.relation, %(schema)s::text),
        'make the outbox by the statements of docs/sql.md, in this schema'
    FROM found AS f
    -- A table of an earlier docs/sql.md has no sequence.
    WHERE f.oid IS NULL AND f.kind <> 'S'

    UNION ALL
    SELECT
        7,
        false,
        format(
            '%%s is %%s, which is not the table of docs/sql.md',
            f.relation,
            CASE
                WHEN f.relkind = f.kind THEN 'an unlogged table'
                ELSE CASE f.relkind
                    WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view' WHEN 'f' THEN 'a foreign table'
                    WHEN 'r' THEN 'a table without partitions' WHEN 'p' THEN 'a partitioned table'
                    ELSE 'no table'
                END
            END
        ),
        'drop it, and make the outbox by the statements of docs/sql.md'
    FROM found AS f
    WHERE f.relkind <> f.kind OR f.relpersistence <> 'p'

    UNION ALL
    SELECT
        8,
        false,
        format('%%s is no partition of mqbroker_outbox', f.relation),
        format(
            'ALTER TABLE %%1$I.mqbroker_outbox ATTACH PARTITION %%1$I.%%2$I FOR VALUES IN (%%3$s)',
            %(schema)s::text, f.relation, right(f.relation, 1)
        )
    FROM found AS f
    WHERE
        f.relation IN ('mqbroker_outbox_0', 'mqbroker_outbox_1') AND f.relkind = 'r'
        AND NOT EXISTS (
            SELECT
            FROM pg_inherits AS i
            INNER JOIN found AS parent ON i.inhparent = parent.oid AND parent.relation = 'mqbroker_outbox'
            WHERE i.inhrelid = f.oid
        )

    UNION ALL
    SELECT
        9,
        false,
        format('%%s has no column %%s', f.relation, e.definition),
        format('ALTER TABLE %%I.%%I ADD COLUMN %%s, or ALTER COLUMN … TYPE', %(schema)s::text, f.relation, e.definition)
    FROM found AS f
    INNER JOIN expected_columns AS x ON f.relation = x.relation
    CROSS JOIN LATERAL unnest(x.columns) AS e (definition)
    WHERE
        f.relkind IN ('r', 'p')
        AND NOT EXISTS (
            SELECT
            FROM pg_attribute AS a
            WHERE
                a.attrelid = f.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND format('%%I %%s', a.attname, format_type(a.atttypid, a.atttypmod)) = e.definition
        )

    UNION ALL
    SELECT
        10,
        false,
        format('the role %%I may not %%s of %%s', current_user, w.right_, f.relation),
        format('GRANT %%s ON %%I.%%I TO %%I', array_to_string(x.rights, ', '), %(schema)s::text, f.relation, current_user)
    FROM found AS f
    INNER JOIN expected_rights AS x ON f.relation = x.relation
    CROSS JOIN LATERAL unnest(x.rights) AS w (right_)
    WHERE f.oid IS NOT NULL AND NOT has_table_privilege(f.oid, w.right_)

    UNION ALL
    SELECT
        11,
        false,
        format('row level security hides rows of %%s from the role %%I', f.relation, current_user),
        format('ALTER TABLE %%I.%%I DISABLE ROW LEVEL SECURITY, or ALTER ROLE %%I BYPASSRLS', %(schema)s::text, f.relation, current_user)
    FROM found AS f
    WHERE f.relkind IN ('r', 'p') AND row_security_active(f.oid)

    UNION ALL
    SELECT
        12,
        false,
        format('%%s has no trigger mqbroker_outbox_number of this schema that is enabled', f.relation),
        format('ALTER TABLE %%I.%%I ENABLE TRIGGER mqbroker_outbox_number, or make it as docs/sql.md does', %(schema)s::text, f.relation)
    FROM found AS f
    WHERE
        f.relation IN ('mqbroker_outbox', 'mqbroker_outbox_0', 'mqbroker_outbox_1') AND f.relkind = f.kind
        AND NOT EXISTS (
            SELECT
            FROM pg_trigger AS t
            INNER JOIN pg_proc AS p ON t.tgfoid = p.oid AND p.proname = 'mqbroker_outbox_number'
            INNER JOIN pg_namespace AS n ON p.pronamespace = n.oid AND n.nspname = %(schema)s
            WHERE t.tgrelid = f.oid AND t.tgname = 'mqbroker_outbox_number' AND t.tgenabled IN ('O', 'A')
        )

    UNION ALL
    SELECT
        13,
        false,
        format('the rule %%I stands before %%s', r.rulename, f.relation),
        format('DROP RULE %%I ON %%I.%%I', r.rulename, %(schema)s::text, f.relation)
    FROM found AS f
    INNER JOIN pg_rewrite AS r ON f.oid = r.ev_class
    WHERE f.relkind IN ('r', 'p')

    UNION ALL
    SELECT
        14,
        false,
        format('the function %%s%%s does not exist', e.name, e.arguments),
        'make it by the statement of docs/sql.md, in the schema of the outbox'
    FROM (VALUES ('mqbroker_outbox_clear', '(smallint)')) AS e (name, arguments)
    WHERE
        NOT EXISTS (
            SELECT
            FROM pg_proc AS p
            INNER JOIN pg_namespace AS n ON p.pronamespace = n.oid
            WHERE
                n.nspname = %(schema)s AND p.proname = e.name
                AND format('(%%s)', pg_get_function_identity_arguments(p.oid)) IN (e.arguments, '(emptied smallint)')
        )

    UNION ALL
    SELECT
        15,
        false,
        format('the role %%I may not execute %%s', current_user, f.signature),
        format('GRANT EXECUTE ON FUNCTION %%s TO %%I', f.signature, current_user)
    FROM functions AS f
    WHERE f.signature LIKE '%%mqbroker\_outbox\_clear(%%' AND NOT has_function_privilege(f.oid, 'EXECUTE')

    UNION ALL
    SELECT
        16,
        false,
        format(
            'the function %%s writes to %%s',
            p.signature,
            CASE WHEN p.path IS NULL THEN 'whatever table its caller''s search_path leads to' ELSE coalesce(
                'the table of the schema ' || quote_ident(p.leads_to), 'no table, by its search_path'
            ) END
        ),
        format('ALTER FUNCTION %%s SET search_path = %%I', p.signature, %(schema)s::text)
    FROM paths AS p
    WHERE p.leads_to IS DISTINCT FROM %(schema)s

    UNION ALL
    -- The first row that is set apart would stop the outbox.
    SELECT
        17,
        false,
        format('%%s has a column %%I that needs a value, which the broker does not know', f.relation, a.attname),
        format('ALTER TABLE %%I.%%I ALTER COLUMN %%I DROP NOT NULL, or give it a DEFAULT', %(schema)s::text, f.relation, a.attname)
    FROM found AS f
    INNER JOIN expected_columns AS x ON f.relation = x.relation
    INNER JOIN pg_attribute AS a ON f.oid = a.attrelid
    WHERE
        f.relation = 'mqbroker_outbox_refused' AND f.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
        AND NOT EXISTS (SELECT FROM unnest(x.columns) AS e (definition) WHERE e.definition LIKE a.attname || ' %%')
)

SELECT
    o.passes,
    o.obstacle,
    o.mend
FROM obstacles AS o
ORDER BY o.place, o.obstacle
LIMIT 5
