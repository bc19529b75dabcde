-- In a source: find whether the table of the outbox's state does not have exactly one row; the answer has the form of
-- `find_obstacles`. Without the row producers cannot insert; with several rows there would be several turns at the same
-- time, which would change the order of rows. This is a separate statement, because reading the table needs the rights
-- that `find_obstacles` checks.
SELECT
    false AS passes,
    CASE
        WHEN count(*) = 0 THEN 'mqbroker_outbox_state has no row'
        ELSE format('mqbroker_outbox_state has %%s rows instead of one', count(*))
    END AS obstacle,
    CASE
        WHEN count(*) = 0 THEN format('%%s INTO mqbroker_outbox_state DEFAULT VALUES', 'INSERT')
        ELSE format('%%s FROM mqbroker_outbox_state WHERE NOT single', 'DELETE')
    END AS mend
FROM mqbroker_outbox_state AS s
HAVING count(*) <> 1
