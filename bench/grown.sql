-- Fills an empty broker in one transaction; each statement takes the sizes messages, halves, topics and groups. The rows are
-- those that the broker itself would have written: dense offsets, log offsets that go on from the sequence, ids in the order
-- of their time, and a stored message for each transaction. Message n goes to topic n mod topics, and there to the four
-- queues in turn. Every fourth one is of a transaction that was committed. Behind them come the half messages.
INSERT INTO topic (name, queues, permission)
SELECT 'topic-' || lpad(n::text, 4, '0'), 4, 'rw'
FROM generate_series(1, %(topics)s::integer) AS n;

INSERT INTO producer_group (name, reject_transaction_message, checks_paused)
SELECT 'group-' || lpad(n::text, 4, '0'), false, false
FROM generate_series(1, %(groups)s::integer) AS n;

INSERT INTO consumer_group (name, start_at, ordered, retry_policy, paused)
SELECT 'group-' || lpad(n::text, 4, '0'), 'earliest', false, '{}', false
FROM generate_series(1, %(groups)s::integer) AS n;

CREATE TEMPORARY TABLE numbered_topic ON COMMIT DROP AS
SELECT id AS topic_id, row_number() OVER (ORDER BY name) - 1 AS number
FROM topic
WHERE name LIKE 'topic-%%';

CREATE TEMPORARY TABLE numbered_producer ON COMMIT DROP AS
SELECT id AS group_id, row_number() OVER (ORDER BY name) - 1 AS number
FROM producer_group;

CREATE TEMPORARY TABLE numbered_consumer ON COMMIT DROP AS
SELECT id AS group_id, row_number() OVER (ORDER BY name) - 1 AS number
FROM consumer_group;

-- A millisecond for each message, the last one is of now.
CREATE FUNCTION pg_temp.stored_at(n bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
SELECT now() - make_interval(secs => (%(messages)s::bigint + %(halves)s::bigint - n) * 0.001)
$$;

-- A UUIDv7 of that time.
CREATE FUNCTION pg_temp.message_id(n bigint) RETURNS uuid LANGUAGE sql STABLE AS $$
SELECT (
    lpad(to_hex((extract(EPOCH FROM pg_temp.stored_at(n)) * 1000)::bigint), 12, '0')
    || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15)
)::uuid
$$;

-- Producers choose them, in no order.
CREATE FUNCTION pg_temp.transaction_id(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
SELECT md5('transaction ' || n)::uuid
$$;

INSERT INTO commit_log (segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id,
    producer_group_id, body, body_form)
SELECT 1, n, pg_temp.stored_at(n), t.topic_id, mod(n / %(topics)s, 4), pg_temp.message_id(n),
    CASE WHEN n >= %(messages)s OR mod(n, 4) = 0 THEN pg_temp.transaction_id(n) END,
    CASE WHEN n >= %(messages)s OR mod(n, 4) = 0 THEN g.group_id END, convert_to(repeat('x', 100), 'UTF8'), 'text'
FROM generate_series(0, %(messages)s::bigint + %(halves)s::bigint - 1) AS n
INNER JOIN numbered_topic AS t ON t.number = mod(n, %(topics)s)
INNER JOIN numbered_producer AS g ON g.number = mod(n / 4, %(groups)s)
ORDER BY n;

INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code,
    reconsume_times, entered_at)
SELECT 1, t.topic_id, mod(n / %(topics)s, 4), n / %(topics)s / 4, 1, n, 0, 0, pg_temp.stored_at(n)
FROM generate_series(0, %(messages)s::bigint - 1) AS n
INNER JOIN numbered_topic AS t ON t.number = mod(n, %(topics)s)
ORDER BY n;

INSERT INTO operation (segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by,
    decided_at, check_times, stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset)
SELECT 1, nextval('operation_id'), pg_temp.transaction_id(n), g.group_id, 'COMMIT', 'producer',
    pg_temp.stored_at(n), 0, pg_temp.stored_at(n), 1, n, pg_temp.message_id(n), t.topic_id,
    mod(n / %(topics)s, 4), n / %(topics)s / 4
FROM generate_series(0, %(messages)s::bigint - 1, 4) AS n
INNER JOIN numbered_topic AS t ON t.number = mod(n, %(topics)s)
INNER JOIN numbered_producer AS g ON g.number = mod(n / 4, %(groups)s)
ORDER BY n;

-- Their first checks are due in an hour and later: none is asked during a measurement.
INSERT INTO half_message (transaction_id, producer_group_id, stored_at, immunity_seconds, next_check_at,
    check_times, exhausted, log_segment, log_offset, message_id, topic_id, queue_id)
SELECT pg_temp.transaction_id(n), g.group_id, pg_temp.stored_at(n), 7200,
    pg_temp.stored_at(n) + make_interval(hours => 2), 0, false, 1, n, pg_temp.message_id(n), t.topic_id,
    mod(n / %(topics)s, 4)
FROM generate_series(%(messages)s::bigint, %(messages)s::bigint + %(halves)s::bigint - 1) AS n
INNER JOIN numbered_topic AS t ON t.number = mod(n, %(topics)s)
INNER JOIN numbered_producer AS g ON g.number = mod(n / 4, %(groups)s)
ORDER BY n;

-- Each consumer group has read ten topics to their ends.
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT 1, g.group_id, t.topic_id, q, 1, count(e.queue_offset), now()
FROM numbered_consumer AS g
INNER JOIN numbered_topic AS t ON mod(t.number - g.number * 10 + %(topics)s * 10, %(topics)s) < 10
CROSS JOIN generate_series(0, 3) AS q
INNER JOIN consume_queue AS e ON t.topic_id = e.topic_id AND q = e.queue_id
GROUP BY g.group_id, t.topic_id, q;

SELECT setval('commit_log_offset', %(messages)s::bigint + %(halves)s::bigint, false)
WHERE %(messages)s::bigint + %(halves)s::bigint > 0
