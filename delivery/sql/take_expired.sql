-- Delete receipts whose invisible time is over, so that the caller publishes each message once. Rows that another
-- transaction is deleting are skipped.
WITH gone AS (
    SELECT r.ctid AS tid, r.group_id
    FROM receipt AS r
    INNER JOIN consumer_group AS g ON r.group_id = g.id
    WHERE
        r.state = 'flight' AND r.expires_at > coalesce(%(since)s::timestamptz, '-infinity') AND r.expires_at <= now()
        AND NOT g.ordered
    ORDER BY r.expires_at
    LIMIT %(max_receipts)s
    FOR UPDATE OF r SKIP LOCKED
)

DELETE FROM receipt AS r
USING gone AS o INNER JOIN consumer_group AS g ON o.group_id = g.id
WHERE r.ctid = o.tid
RETURNING
    r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.nonce, g.name AS group_name,
    coalesce(
        (
            -- The limit of retries that the message itself sets, in the JSON that the broker writes to `properties`.
            SELECT substring(convert_from(m.properties, 'UTF8') FROM '[{,]"MAX_RECONSUME_TIMES":"([0-9]+)"')::integer
            FROM commit_log AS m
            WHERE m.log_offset = r.log_offset AND m.segment_id = r.log_segment
        ),
        g.max_reconsume_times
    ) AS max_reconsume_times, g.retry_policy, r.origin_topic_id, r.log_segment, r.log_offset, r.tags_code, r.reconsume_times
