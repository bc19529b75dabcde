-- Fills a broker with many of everything; each statement takes the sizes :messages, :halves, :topics and :groups.
INSERT INTO topic (name, queues, permission)
SELECT 'topic-' || lpad(n::text, 4, '0'), 4, 'rw'
FROM generate_series(1, :topics) AS n;

INSERT INTO topic (name, queues, permission)
SELECT '%DLQ%group-' || lpad(n::text, 4, '0'), 1, 'rw'
FROM generate_series(1, :groups) AS n;

INSERT INTO producer_group (name, reject_transaction_message, checks_paused)
SELECT 'group-' || lpad(n::text, 4, '0'), false, false
FROM generate_series(1, :groups) AS n;

INSERT INTO endpoint (group_id, url, max_batch, timeout_seconds, concurrency, secret, state, failures)
SELECT id, 'https://' || name || '.example/', 1, 5, 16, 'whsec_c2VjcmV0', CASE WHEN id % 10 = 0 THEN 'open'
    ELSE 'healthy' END, 0
FROM producer_group
WHERE id % 4 > 0;

INSERT INTO consumer_group (name, start_at, ordered, retry_policy, paused)
SELECT 'group-' || lpad(n::text, 4, '0'), 'earliest', false, '{}', false
FROM generate_series(1, :groups) AS n;

INSERT INTO subscription (name, group_name, topic_name, url, max_batch, timeout_seconds, concurrency,
    secret, paused, state, failures)
SELECT g.name, g.name, 'topic-0001', 'https://' || g.name || '.example/', 1, 10, 16, 'whsec_x', false, CASE
    WHEN g.id % 10 = 0 THEN 'open' ELSE 'healthy' END, 0
FROM consumer_group AS g;

CREATE TEMPORARY TABLE places AS
SELECT id AS topic_id, row_number() OVER (ORDER BY name) - 1 AS place
FROM topic
WHERE name LIKE 'topic-%';

INSERT INTO commit_log (segment_id, log_offset, stored_at, topic_id, queue_id, message_id, keys, body,
    body_form)
SELECT 1, n, now() - make_interval(secs => (:messages - n) * 0.01), p.topic_id, (n / :topics) % 4,
    gen_random_uuid(), CASE WHEN n % 10 = 0 THEN ARRAY['key-' || n % 1000] END, 'a body of some bytes', 'text'
FROM generate_series(0, :messages - 1) AS n
INNER JOIN places AS p ON p.place = n % :topics;

INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code,
    reconsume_times, entered_at)
SELECT 1, topic_id, queue_id, row_number() OVER (PARTITION BY topic_id, queue_id ORDER BY log_offset) - 1,
    1, log_offset, 0, 0, stored_at
FROM commit_log;

INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code,
    reconsume_times, entered_at)
SELECT 1, t.id, 0, n, 1, n, 0, 16, now()
FROM topic AS t, generate_series(0, 9) AS n
WHERE t.name LIKE '%DLQ%group-%';

INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT 1, g.id, p.topic_id, q, 1, g.id % 7, now()
FROM (SELECT id, row_number() OVER (ORDER BY name) - 1 AS place
FROM consumer_group) AS g
INNER JOIN places AS p ON p.place IN (g.place % :topics, (g.place + 1) % :topics), generate_series(0, 3) AS q;

INSERT INTO half_message (transaction_id, producer_group_id, stored_at, immunity_seconds, next_check_at,
    check_times, exhausted, last_failure, discarded_at, log_segment, log_offset, message_id, topic_id,
    queue_id)
SELECT gen_random_uuid(), g.id, now() - make_interval(secs => n * 0.1), 6, now() + make_interval(secs => n *
    0.01), n % 15, false, CASE WHEN n % 3 = 0 THEN 'The endpoint answered 503.' END, CASE WHEN n % 10 = 0 THEN
    now() END, 1, n % :messages, gen_random_uuid(), p.topic_id, 0
FROM generate_series(1, :halves) AS n
INNER JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place
FROM producer_group) AS g ON g.place = n % :groups
INNER JOIN places AS p ON p.place = n % :topics;

INSERT INTO operation (segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by,
    decided_at, check_times, stored_at, log_segment, log_offset, message_id, topic_id, queue_id)
SELECT 1, n, gen_random_uuid(), (SELECT min(id)
FROM producer_group), CASE WHEN n % 5 = 0 THEN 'ROLLBACK' ELSE 'COMMIT' END, 'producer', now() -
    make_interval(secs => (:halves - n) * 0.05), 0, now(), 1, n % :messages, gen_random_uuid(),
    p.topic_id, 0
FROM generate_series(1, :halves) AS n
INNER JOIN places AS p ON p.place = n % :topics;

SELECT setval('commit_log_offset', :messages);

SELECT setval('operation_id', :halves);

DROP TABLE places
