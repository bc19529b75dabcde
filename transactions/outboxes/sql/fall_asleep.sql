-- In a source: set whether producers send notices: they do while the drain sleeps, and need not while it reads anyway.
-- Rows that were inserted before and are committed later are found by the drain's next looks. The sequence, which a
-- table of an earlier docs/sql.md does not have, changes for all sessions at once, whatever becomes of the transaction.
UPDATE mqbroker_outbox_state SET asleep = %(asleep)s
FROM (
    SELECT setval(to_regclass('mqbroker_outbox_awake'), CASE WHEN %(asleep)s THEN 1 ELSE 2 END) AS value
) AS flag
