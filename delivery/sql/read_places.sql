-- Read what an ordered group has in flight, held or parked in some queues, in order. The caller holds the lock of the
-- group's positions there, so nobody hands out meanwhile; the database says whose time has come.
-- Of each queue from a floor on, below which nothing was left at an earlier move of the group: under a pinned snapshot a
-- probe from the queue's beginning would walk through all that was ever acked. A move back since then lowers the floor.
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
    SELECT t.*
    FROM receipt AS t
    WHERE
        t.group_id = %(group_id)s AND t.topic_id = q.topic_id AND t.queue_id = q.queue_id
        AND t.queue_offset >= lowest.queue_offset
    ORDER BY t.queue_offset
    LIMIT %(max_places)s
) AS r
ORDER BY q.topic_id, q.queue_id, r.queue_offset
