-- Sum the counts of releases within the given number of seconds, per queue and bucket. A row holds some seconds of one
-- process.
-- Row: The number of recent releases of one level's queue, or of timers, per bucket of lateness.
SELECT summed.queue_id, array_agg(summed.count ORDER BY summed.bucket)::integer [] AS counts
FROM (
    SELECT l.queue_id, c.bucket, sum(c.count) AS count
    FROM lateness AS l
    CROSS JOIN LATERAL unnest(l.counts) WITH ORDINALITY AS c (count, bucket)
    WHERE l.noted_at > now() - make_interval(secs => %(seconds)s)
    GROUP BY l.queue_id, c.bucket
) AS summed
GROUP BY summed.queue_id
