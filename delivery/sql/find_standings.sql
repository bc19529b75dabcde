-- Find the state of entries of a message in consumer groups: whether and when a group's progress passed the entry, and
-- the group's receipt or bundle of the entry, if any. An entry of a group's own topic concerns this group; another
-- entry concerns each group that has begun to read its topic. Each pair of group and entry costs some probes by index:
-- a binary search over the group's moves, which are dense, finds the move that passed the entry. A group that was reset
-- may have passed the entry more than once; one of these moves is found.
WITH RECURSIVE standing AS (
    SELECT
        g.id AS group_id, g.name AS group_name, g.takes_turns, g.fair, e.topic_id, e.queue_id, e.queue_offset,
        oldest.move AS oldest_move, newest.move AS newest_move,
        coalesce(newest.next_offset > e.queue_offset, false) AS passed
    FROM unnest(
        %(topic_id)s::integer [], %(queue_id)s::integer [], %(queue_offset)s::bigint [], %(group_name)s::text []
    ) AS e (topic_id, queue_id, queue_offset, group_name)
    CROSS JOIN LATERAL (
        (
            SELECT c.id, c.name, c.ordered OR c.fair_by IS NOT NULL AS takes_turns, c.fair_by IS NOT NULL AS fair
            FROM consumer_group AS c
            WHERE c.name = e.group_name
        )
        UNION ALL
        (
            SELECT c.id, c.name, c.ordered OR c.fair_by IS NOT NULL AS takes_turns, c.fair_by IS NOT NULL AS fair
            FROM consumer_group AS c
            WHERE
                e.group_name IS NULL
                AND EXISTS (SELECT 1 FROM progress AS p WHERE p.reader_id = c.id AND p.topic_id = e.topic_id)
            ORDER BY c.name
            LIMIT %(max_groups)s
        )
    ) AS g
    LEFT JOIN LATERAL (
        SELECT p.move, p.next_offset
        FROM progress AS p
        WHERE p.reader_id = g.id AND p.topic_id = e.topic_id AND p.queue_id = e.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS newest ON true
    LEFT JOIN LATERAL (
        SELECT p.move
        FROM progress AS p
        WHERE p.reader_id = g.id AND p.topic_id = e.topic_id AND p.queue_id = e.queue_id
        ORDER BY p.move
        LIMIT 1
    ) AS oldest ON true
),

halving AS (
    SELECT s.group_id, s.topic_id, s.queue_id, s.queue_offset, s.oldest_move AS low, s.newest_move AS high
    FROM standing AS s
    WHERE s.passed
    UNION ALL
    SELECT
        h.group_id, h.topic_id, h.queue_id, h.queue_offset,
        CASE WHEN probe.next_offset > h.queue_offset THEN h.low ELSE (h.low + h.high) / 2 + 1 END,
        CASE WHEN probe.next_offset > h.queue_offset THEN (h.low + h.high) / 2 ELSE h.high END
    FROM halving AS h
    LEFT JOIN LATERAL (
        SELECT p.next_offset
        FROM progress AS p
        WHERE
            p.reader_id = h.group_id AND p.topic_id = h.topic_id AND p.queue_id = h.queue_id
            AND p.move = (h.low + h.high) / 2
        LIMIT 1
    ) AS probe ON true
    WHERE h.low < h.high
)

SELECT
    s.group_name, s.takes_turns, s.topic_id, s.queue_id, s.queue_offset,
    -- Passed: the group's progress is beyond the entry, and the entry is not among those that a fair group has read
    -- ahead.
    s.passed AND NOT (
        s.fair AND EXISTS (
            SELECT 1
            FROM waiting AS w
            WHERE
                w.group_id = s.group_id AND w.queue_topic_id = s.topic_id AND w.queue_id = s.queue_id
                AND w.first_offset <= s.queue_offset AND s.queue_offset = any(w.offsets[w.taken + 1:])
        )
    ) AS passed,
    -- NULL if the group passed the entry before the oldest move that is kept.
    CASE WHEN h.low > s.oldest_move OR s.oldest_move = 1 THEN passing.moved_at END AS passed_at,
    r.state, r.received_at, r.expires_at, r.reconsume_times
FROM standing AS s
LEFT JOIN halving AS h
    ON
        s.group_id = h.group_id AND s.topic_id = h.topic_id AND s.queue_id = h.queue_id
        AND s.queue_offset = h.queue_offset AND h.low >= h.high
LEFT JOIN LATERAL (
    SELECT p.moved_at
    FROM progress AS p
    WHERE p.reader_id = s.group_id AND p.topic_id = s.topic_id AND p.queue_id = s.queue_id AND p.move = h.low
    LIMIT 1
) AS passing ON true
LEFT JOIN LATERAL (
    SELECT t.state, t.received_at, t.expires_at, t.reconsume_times
    FROM receipt AS t
    WHERE
        t.group_id = s.group_id AND t.topic_id = s.topic_id AND t.queue_id = s.queue_id
        AND t.queue_offset = s.queue_offset
    UNION ALL
    SELECT 'flight', b.received_at, b.expires_at, 0
    FROM bundle AS b
    WHERE
        b.group_id = s.group_id AND b.topic_id = s.topic_id AND b.queue_id = s.queue_id
        AND b.first_offset = s.queue_offset & ~63::bigint AND (b.unsettled >> (s.queue_offset & 63)::integer) & 1 = 1
    LIMIT 1
) AS r ON true
ORDER BY s.group_name
