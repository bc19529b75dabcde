-- Hand out entries that a group was not handed yet, each share to one receive, and hide them until they are acked or their
-- time is over by the database's clock. The caller holds the lock of the group's progress, so no other transaction hands
-- them out. Of a queue no more is handed out at once than max_bytes of bodies, but always its first entry. Each message is
-- probed by index on its own, as in read_entries.
WITH share AS MATERIALIZED (
    SELECT s.*
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(from_offset)b::bigint [],
        %(entries)b::integer [], %(nonce)b::bigint [], %(invisible_seconds)b::double precision [],
        %(origin_topic_id)b::integer []
    ) WITH ORDINALITY AS s (
        group_id, topic_id, queue_id, from_offset, entries, nonce, invisible_seconds, origin_topic_id, share
    )
),

shared AS (
    SELECT
        m.*, s.share, e.queue_offset, e.reconsume_times, e.tags_code,
        sum(octet_length(m.body)) OVER (
            PARTITION BY s.topic_id, s.queue_id
            ORDER BY e.queue_offset ROWS UNBOUNDED PRECEDING
        ) - octet_length(m.body) AS bytes_before
    FROM share AS s
    CROSS JOIN LATERAL (
        SELECT c.queue_offset, c.tags_code, c.reconsume_times, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE
            c.topic_id = s.topic_id AND c.queue_id = s.queue_id AND c.queue_offset >= s.from_offset
            AND c.queue_offset < s.from_offset + s.entries
        ORDER BY c.queue_offset
        LIMIT s.entries
    ) AS e
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = e.log_segment AND l.log_offset = e.log_offset
        LIMIT 1
    ) AS m
),

handed AS (
    SELECT * FROM shared WHERE bytes_before < %(max_bytes)s
),

hidden AS (
    INSERT INTO receipt (
        group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
        reconsume_times, origin_topic_id, state
    )
    SELECT
        s.group_id, s.topic_id, s.queue_id, h.queue_offset, s.nonce, now() + make_interval(secs => s.invisible_seconds),
        now(), h.segment_id, h.log_offset, h.tags_code, h.reconsume_times, s.origin_topic_id, 'flight'
    FROM handed AS h
    INNER JOIN share AS s ON h.share = s.share
)

SELECT h.*
FROM handed AS h
ORDER BY h.share, h.queue_offset
