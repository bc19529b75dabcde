-- In a source: whether the state of its outbox has no row, as `find_obstacles` answers. Without one producers can
-- insert nothing. It stands apart, because reading the table needs the rights that `find_obstacles` looks for.
SELECT
    false AS passes,
    'mqbroker_outbox_state has no row' AS obstacle,
    format('%%s INTO mqbroker_outbox_state DEFAULT VALUES', 'INSERT') AS mend
WHERE NOT EXISTS (SELECT FROM mqbroker_outbox_state)
