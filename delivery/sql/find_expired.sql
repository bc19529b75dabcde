-- Find whether the invisible time of any delivery has been over for late_seconds: one probe by index when there is
-- none. The scan starts at `since`, before which no receipt is left: while a session holds an old snapshot, a scan from
-- the beginning would read the dead rows of all receipts that were acked.
SELECT
    now() AS now,
    EXISTS (
        SELECT 1
        FROM receipt AS r
        WHERE
            r.state = 'flight' AND r.expires_at > coalesce(%(since)s::timestamptz, '-infinity')
            AND r.expires_at <= now() - make_interval(secs => %(late_seconds)s)
    )
    OR EXISTS (
        SELECT 1
        FROM bundle AS b
        WHERE
            b.expires_at > coalesce(%(since)s::timestamptz, '-infinity')
            AND b.expires_at <= now() - make_interval(secs => %(late_seconds)s)
    ) AS found
