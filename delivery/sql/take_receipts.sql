-- Delete nacked or returned deliveries, so that the caller publishes each message once. No row is found for a handle
-- whose delivery was acked before, whose time is over, or whose message was handed out again. Handles come sorted, so
-- two statements lock rows in the same order; each handle is looked up by a separate index probe.
WITH found AS (
    SELECT a.group_id, a.nonce, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(nonce)b::bigint []
    ) AS a (group_id, topic_id, queue_id, queue_offset, nonce)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
            AND r.queue_offset = a.queue_offset
        LIMIT 1
    ) AS f
)

DELETE FROM receipt AS r
USING found, consumer_group AS g
WHERE
    g.id = found.group_id AND r.ctid = found.tid
    AND (r.nonce = found.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
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
