-- In a source: set the settings on which the form of a result, the wait for a lock and the end of a session depend: for
-- this transaction only, unless the session is the server's own, because behind a pooler it may next belong to another
-- program. The settings of the role and the database have no effect. A kept plan reads the first rows by their index,
-- also when it was made while the table was empty. Each statement has its own snapshot, because a partition is truncated after a
-- look for rows, which must see everything committed before. A session whose process is frozen within a transaction is
-- ended after 20 s.
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
