-- Find the latest exports, the age of each, and how many log offsets were taken since it, all by index probes.
SELECT
    e.target, e.taken_at, e.finished_at, e.rows::text AS counts,
    extract(EPOCH FROM now() - e.taken_at)::double precision AS seconds_behind,
    greatest(coalesce((SELECT l.log_offset FROM commit_log AS l ORDER BY l.log_offset DESC LIMIT 1), -1) - e.log_offset, 0) AS messages_behind
FROM export AS e
ORDER BY e.finished_at DESC
LIMIT %(max_rows)s
