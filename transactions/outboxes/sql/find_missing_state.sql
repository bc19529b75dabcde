-- In a source: find whether the table of the outbox's state has no row, in the form of `find_obstacles`. Without the
-- row producers cannot insert. A statement of its own, because reading the table needs the rights that `find_obstacles`
-- checks.
SELECT
    false AS passes,
    'mqbroker_outbox_state has no row' AS obstacle,
    format('%%s INTO mqbroker_outbox_state DEFAULT VALUES', 'INSERT') AS mend
WHERE NOT EXISTS (SELECT FROM mqbroker_outbox_state)
