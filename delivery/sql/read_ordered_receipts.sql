-- Read an ordered group's deliveries in flight in some queues, and the first held or parked receipt of each waiting
-- key: by index from key to key, however many receipts are parked behind each. The caller holds the lock of the group's
-- progress, so no other transaction hands out meanwhile; due times are by the database's clock.
-- Deliveries in flight are read from a floor on, below which no receipt was left at an earlier move of the group: while
-- a session holds an old snapshot, a scan from the queue's beginning would read the dead rows of all acked receipts. A
-- move back lowers the floor.
SELECT
    q.topic_id, q.queue_id, r.queue_offset, r.state, r.expires_at > now() AS waits, r.sharding_key,
    r.log_segment AS segment_id, r.log_offset, r.tags_code, r.reconsume_times
FROM unnest(
    %(topic_id)s::integer [], %(queue_id)s::integer [], %(floor)s::bigint [], %(floor_move)s::bigint []
) AS q (topic_id, queue_id, floor, floor_move)
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN q.floor > 0 THEN least(
                q.floor,
                (
                    SELECT min(p.next_offset)
                    FROM progress AS p
                    WHERE
                        p.reader_id = %(group_id)s AND p.topic_id = q.topic_id AND p.queue_id = q.queue_id
                        AND p.move >= q.floor_move
                )
            )
            ELSE 0
        END AS queue_offset
) AS lowest
CROSS JOIN LATERAL (
    (
        SELECT
            t.queue_offset, t.state, t.expires_at, t.sharding_key, t.log_segment, t.log_offset, t.tags_code,
            t.reconsume_times
        FROM receipt AS t
        WHERE
            t.group_id = %(group_id)s AND t.topic_id = q.topic_id AND t.queue_id = q.queue_id
            AND t.queue_offset >= lowest.queue_offset AND t.state = 'flight' AND t.sharding_key IS NOT NULL
        ORDER BY t.queue_offset
        LIMIT %(max_receipts)s
    )
    UNION ALL
    (
        WITH RECURSIVE first_of_key AS (
            (
                SELECT
                    t.queue_offset, t.state, t.expires_at, t.sharding_key, t.log_segment, t.log_offset, t.tags_code,
                    t.reconsume_times
                FROM receipt AS t
                WHERE
                    t.group_id = %(group_id)s AND t.topic_id = q.topic_id AND t.queue_id = q.queue_id
                    AND t.state IN ('held', 'parked')
                ORDER BY t.sharding_key, t.queue_offset
                LIMIT 1
            )
            UNION ALL
            SELECT
                next.queue_offset, next.state, next.expires_at, next.sharding_key, next.log_segment, next.log_offset,
                next.tags_code, next.reconsume_times
            FROM first_of_key AS w
            CROSS JOIN LATERAL (
                SELECT t.*
                FROM receipt AS t
                WHERE
                    t.group_id = %(group_id)s AND t.topic_id = q.topic_id AND t.queue_id = q.queue_id
                    AND t.state IN ('held', 'parked') AND t.sharding_key > w.sharding_key
                ORDER BY t.sharding_key, t.queue_offset
                LIMIT 1
            ) AS next
        )

        SELECT
            w.queue_offset, w.state, w.expires_at, w.sharding_key, w.log_segment, w.log_offset, w.tags_code,
            w.reconsume_times
        FROM first_of_key AS w
        LIMIT %(max_receipts)s
    )
) AS r
ORDER BY q.topic_id, q.queue_id, r.queue_offset
