-- Lock deliveries of an ordered group that its consumer could not finish, in the order of their key. A row not returned
-- was acked before, or its time is over, or somebody else holds the message now.
SELECT
    r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.nonce, g.name AS group_name, g.max_reconsume_times,
    g.retry_policy, r.origin_topic_id, r.log_segment, r.log_offset, r.tags_code, r.reconsume_times
FROM receipt AS r
INNER JOIN unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
    %(nonce)b::bigint []
) AS a (group_id, topic_id, queue_id, queue_offset, nonce)
    ON
        r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
        AND r.queue_offset = a.queue_offset AND r.nonce = a.nonce
INNER JOIN consumer_group AS g ON r.group_id = g.id
WHERE r.state = 'flight' AND r.expires_at > now()
ORDER BY r.group_id, r.topic_id, r.queue_id, r.queue_offset
FOR UPDATE OF r
