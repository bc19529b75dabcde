-- In a source: whether its producers notify. They cannot where the server knows transactions of two phases, which may not
-- notify, nor where the table has no trigger for it.
SELECT
    current_setting('max_prepared_transactions')::integer = 0 AND EXISTS (
        SELECT FROM pg_trigger AS t
        WHERE t.tgrelid = to_regclass('mqbroker_outbox') AND t.tgname = 'mqbroker_outbox_wake' AND t.tgenabled <> 'D'
    ) AS notifies
