-- Find whether any delivery has been over for late_seconds: one index probe, so that nothing to do costs nothing. The scan
-- starts behind `since`, before which nothing is left: under a pinned snapshot a scan from the beginning of time would walk
-- through all that was ever acked.
SELECT
    now() AS now,
    EXISTS (
        SELECT 1
        FROM receipt AS r
        WHERE
            r.state = 'flight' AND r.expires_at > coalesce(%(since)s::timestamptz, '-infinity')
            AND r.expires_at <= now() - make_interval(secs => %(late_seconds)s)
    ) AS found
