-- In a source: set the settings that decide the form of a result, the wait for a lock and the end of a session, so that
-- the settings of the role and the database have no effect. If a pooler shares the session, they are set for this
-- transaction only, because the session may next belong to another program. A plan that was made while the table was
-- empty still reads the first rows by their index. Each statement has its own snapshot: before a partition is
-- truncated, the statement that looks for rows must see everything committed until then. A session whose process is
-- frozen within a transaction is ended after 20 s.
SELECT count(set_config(s.name, s.setting, %(is_local)s)) AS settings
FROM (
    VALUES
    ('client_encoding', 'UTF8'),
    ('standard_conforming_strings', 'on'),
    ('DateStyle', 'ISO, YMD'),
    ('IntervalStyle', 'postgres'),
    ('TimeZone', 'UTC'),
    ('bytea_output', 'hex'),
    ('extra_float_digits', '1'),
    ('statement_timeout', '10s'),
    ('lock_timeout', '3s'),
    ('idle_in_transaction_session_timeout', '20s'),
    ('row_security', 'off'),
    ('quote_all_identifiers', 'off'),
    ('exit_on_error', 'off'),
    ('jit', 'off'),
    ('plan_cache_mode', 'force_generic_plan'),
    ('enable_seqscan', 'off'),
    ('enable_sort', 'off'),
    ('enable_hashjoin', 'off'),
    ('enable_mergejoin', 'off')
) AS s (name, setting)
