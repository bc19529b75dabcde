-- Count the entries of each window of the last seconds, and all entries that the queues hold. Offsets are dense, so a
-- count is a difference of offsets. Queues whose newest entry is older than the window cost one probe; in other queues,
-- halving the range of offsets finds where the window begins. Entries of the schedule topic are not counted, because
-- they are not visible yet. Topics that have left this cell are counted in their new cell. Only topics whose names
-- begin with one of `starts` are counted.
-- Row: The numbers of kept entries, and of entries of the last `seconds`; both also for the discarded topic.
WITH RECURSIVE queues AS (
    SELECT
        t.id AS topic_id, t.name AS topic, s.queue_id, last.entered_at AS newest_at,
        coalesce(f.min_offset, 0) AS min_offset,
        coalesce(last.queue_offset + 1, f.min_offset, 0) AS max_offset
    FROM topic AS t
    INNER JOIN cell_identity AS i ON t.id <> all(i.departed)
    CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS s (queue_id)
    LEFT JOIN queue_floor AS f ON t.id = f.topic_id AND s.queue_id = f.queue_id
    LEFT JOIN LATERAL (
        SELECT c.queue_offset, c.entered_at
        FROM consume_queue AS c
        WHERE c.topic_id = t.id AND c.queue_id = s.queue_id
        ORDER BY c.queue_offset DESC
        LIMIT 1
    ) AS last ON true
    WHERE t.name <> %(schedule_topic)s AND t.name ^@ any(%(starts)s::text [])
    LIMIT %(max_queues)s
),

windows AS (
    SELECT w.seconds, now() - make_interval(secs => w.seconds) AS since
    FROM unnest(%(seconds)s::integer []) AS w (seconds)
),

halving AS (
    SELECT
        w.seconds, w.since, q.topic_id, q.topic, q.queue_id, q.max_offset, q.min_offset AS low, q.max_offset AS high
    FROM windows AS w
    INNER JOIN queues AS q ON w.since <= q.newest_at
    UNION ALL
    SELECT
        h.seconds, h.since, h.topic_id, h.topic, h.queue_id, h.max_offset,
        CASE WHEN probe.entered_at < h.since THEN probe.queue_offset + 1 ELSE h.low END,
        CASE WHEN probe.entered_at < h.since THEN h.high ELSE (h.low + h.high) / 2 END
    FROM halving AS h
    CROSS JOIN LATERAL (
        SELECT c.queue_offset, c.entered_at
        FROM consume_queue AS c
        WHERE
            c.topic_id = h.topic_id AND c.queue_id = h.queue_id
            AND c.queue_offset >= (h.low + h.high) / 2
        ORDER BY c.queue_offset
        LIMIT 1
    ) AS probe
    WHERE h.low < h.high
)

SELECT
    w.seconds,
    (SELECT coalesce(sum(q.max_offset - q.min_offset), 0)::bigint FROM queues AS q) AS kept,
    (
        SELECT coalesce(sum(q.max_offset - q.min_offset), 0)::bigint
        FROM queues AS q
        WHERE q.topic = %(discarded_topic)s
    ) AS discarded_kept,
    (
        SELECT coalesce(sum(h.max_offset - h.low), 0)::bigint
        FROM halving AS h
        WHERE h.seconds = w.seconds AND h.low >= h.high
    ) AS entries,
    (
        SELECT coalesce(sum(h.max_offset - h.low), 0)::bigint
        FROM halving AS h
        WHERE h.seconds = w.seconds AND h.low >= h.high AND h.topic = %(discarded_topic)s
    ) AS discarded
FROM windows AS w
