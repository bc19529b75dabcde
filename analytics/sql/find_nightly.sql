-- Find the latest night's run, the night that is due now or was due last, and how many runs went well and failed.
-- Row: The latest run, None before the first one; the night that was due last, and for how many seconds it is due.
-- Null: day, started_at, ended_at, tries, failure.
SELECT
    due.day AS due_day, due.since, latest.day, latest.started_at, latest.ended_at, latest.tries, latest.failure,
    (SELECT count(*) FROM nightly_run AS r WHERE r.ended_at IS NOT NULL AND r.failure IS NULL) AS succeeded,
    (SELECT coalesce(sum(r.failures), 0)::bigint FROM nightly_run AS r) AS failed
FROM (
    SELECT
        (now() AT TIME ZONE 'UTC' - %(at)s::time::interval)::date AS day,
        extract(EPOCH FROM (now() AT TIME ZONE 'UTC' - %(at)s::time::interval)::time)::double precision AS since
) AS due
LEFT JOIN (SELECT r.* FROM nightly_run AS r ORDER BY r.day DESC LIMIT 1) AS latest ON true
