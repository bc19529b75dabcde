-- Read settings that the broker's promises depend on: the settings that make a commit durable, the settings of this
-- session, and whether the session may write. Also read: the settings with the given names, on which the form of a
-- result depends; the server process of the session, which is the same for two sessions if a pooler shares it between
-- them; and whether Citus is in the database.
-- Row: The server behind a session, and the session's own settings.
SELECT
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('enable_seqscan') AS enable_seqscan,
    (SELECT array_agg(current_setting(s.name) ORDER BY s.place) FROM unnest(%(plain)s::text[]) WITH ORDINALITY AS s (name, place))
        AS plain,
    current_setting('transaction_read_only') AS read_only,
    pg_backend_pid() AS pid,
    concat_ws(' ', pg_postmaster_start_time(), current_setting('port'), current_database()) AS server,
    EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') AS citus
