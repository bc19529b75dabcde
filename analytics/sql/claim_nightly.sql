-- Claim the night's run for the worker that starts it: when its time has come, and unless it runs, ended well, or was
-- tried often enough. There is one row per night, so only one of several workers gets it. A run holds the lock of the
-- nightly run from its first seconds on. If the lock is free and the run has no outcome, its process was killed: the
-- run counts as a failure and is begun again.
-- Row: A night's run that this process is to start, and which try of it this is.
INSERT INTO nightly_run AS r (day, started_at, tries, failures)
SELECT due.day, now(), 1, 0
FROM (
    SELECT
        (now() AT TIME ZONE 'UTC' - %(at)s::time::interval)::date AS day,
        (now() AT TIME ZONE 'UTC' - %(at)s::time::interval)::time AS since
) AS due
WHERE
    due.since < make_interval(hours => %(hours)s::integer)::time
    AND NOT EXISTS (
        SELECT 1
        FROM pg_locks AS l
        INNER JOIN pg_database AS d ON l.database = d.oid
        WHERE
            l.locktype = 'advisory' AND l.granted AND d.datname = current_database()
            AND l.classid::bigint = %(key)s::bigint >> 32 AND l.objid::bigint = (%(key)s::bigint & 4294967295)
            AND l.objsubid = 1
    )
ON CONFLICT (day) DO UPDATE
SET
    started_at = now(), ended_at = NULL, failure = NULL, tries = r.tries + 1,
    failures = r.failures + CASE WHEN r.ended_at IS NULL THEN 1 ELSE 0 END
WHERE
    (r.ended_at IS NULL OR r.failure IS NOT NULL) AND r.tries < %(max_tries)s
    AND r.started_at < now() - make_interval(secs => %(start_seconds)s)
RETURNING r.day, r.tries
