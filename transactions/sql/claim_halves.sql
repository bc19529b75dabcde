-- Claim a group's half messages that are due for a check, the longest due first, up to a number and to a size of bodies
-- and properties; the first one is claimed whatever its size. Until the claim ends no other process asks about them.
-- Rows that another worker claims at the same time are skipped. No check is counted here, because a worker that dies
-- now has asked about none. The ids are probed as an array, so that no plan can scan all half messages. With
-- `topic_ids` only half messages whose messages all have one of these topics are claimed. The length of a body is
-- stored at its beginning, so no body is read.
-- Row: A half message that only this process asks about until the claim ends. `claimed_bytes`: of the whole claim.
-- Null: endpoint_id, last_failure.
WITH first AS MATERIALIZED (
    SELECT in_line.*
    FROM (VALUES (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT
            d.transaction_id, d.next_check_at, d.log_segment,
            coalesce(d.log_offsets, ARRAY[d.log_offset]) AS log_offsets
        FROM half_message AS d
        WHERE
            d.producer_group_id = %(group_id)s AND d.line = l.line
            AND d.stored_at <= now() - make_interval(secs => l.line)
            AND CASE WHEN d.discarded_at IS NULL THEN true END
            AND (
                %(topic_ids)s::integer [] IS NULL
                OR coalesce(d.topic_ids, ARRAY[d.topic_id]) <@ %(topic_ids)s::integer []
            )
        ORDER BY d.stored_at
        LIMIT %(max_halves)s
        FOR UPDATE SKIP LOCKED
    ) AS in_line
),

again AS MATERIALIZED (
    SELECT
        d.transaction_id, d.next_check_at, d.log_segment,
        coalesce(d.log_offsets, ARRAY[d.log_offset]) AS log_offsets
    FROM half_message AS d
    WHERE
        d.producer_group_id = %(group_id)s AND d.line = 0 AND d.discarded_at IS NULL AND NOT d.exhausted
        AND d.next_check_at <= now()
        AND (%(topic_ids)s::integer [] IS NULL OR coalesce(d.topic_ids, ARRAY[d.topic_id]) <@ %(topic_ids)s::integer [])
    ORDER BY d.next_check_at
    LIMIT %(max_halves)s
    FOR UPDATE SKIP LOCKED
),

due AS (
    SELECT * FROM first
    UNION ALL
    SELECT * FROM again
    ORDER BY next_check_at
    LIMIT %(max_halves)s
),

sized AS (
    SELECT
        d.transaction_id, m.bytes,
        row_number() OVER in_order AS number,
        sum(m.bytes) OVER in_order AS together
    FROM due AS d
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(c.body) + coalesce(octet_length(c.properties), 0)), 0) AS bytes
        FROM commit_log AS c
        WHERE c.segment_id = d.log_segment AND c.log_offset = any(d.log_offsets)
    ) AS m
    WINDOW in_order AS (ORDER BY d.next_check_at, d.transaction_id)
),

chosen AS (
    SELECT s.transaction_id, s.bytes
    FROM sized AS s
    WHERE s.number = 1 OR s.together <= %(max_bytes)s
)

UPDATE half_message AS h
SET next_check_at = now() + make_interval(secs => %(claim_seconds)s), line = 0
WHERE h.transaction_id = any(array(SELECT c.transaction_id FROM chosen AS c))
RETURNING
    h.transaction_id, h.endpoint_id, h.check_times, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets, h.last_failure,
    h.next_check_at AS claimed_until,
    (SELECT sum(c.bytes)::bigint FROM chosen AS c) AS claimed_bytes
