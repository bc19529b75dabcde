-- In a source: set whether producers send notices: they send notices while the drain sleeps, but not while the drain
-- reads regularly. Rows that were inserted before this and are committed later are found by the drain's next looks. The
-- sequence, which a table of an earlier docs/sql.md does not have, changes for all sessions at once, whether or not the
-- transaction is committed.
UPDATE mqbroker_outbox_state SET asleep = %(asleep)s
FROM (
    SELECT setval(to_regclass('mqbroker_outbox_awake'), CASE WHEN %(asleep)s THEN 1 ELSE 2 END) AS value
) AS flag
