-- Find quantiles of the seconds for which the latest transactions were undecided. The newest operations are read
-- backwards by their key, up to a limit, and operations of the last hour count.
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (
        ORDER BY extract(EPOCH FROM latest.decided_at - latest.stored_at)
    ) AS seconds
FROM (
    SELECT o.decision, o.decided_at, o.stored_at
    FROM operation AS o
    ORDER BY o.operation_id DESC
    LIMIT %(max_count)s
) AS latest
WHERE latest.decision IN ('COMMIT', 'ROLLBACK') AND latest.decided_at > now() - interval '1 hour'
