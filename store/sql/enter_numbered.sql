-- Enter stored messages at the queue offsets that the statement before has computed under the locks of their queues.
-- The register `mq.entries` has six numbers for each entry, in one array: topic, queue, queue offset, segment, log
-- offset, code of tags. Read as one array an entry takes 3.5 us, as a text for each entry 5.7 us.
INSERT INTO consume_queue (
    segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
)
SELECT
    %(segment_id)s, e.n[g.i], e.n[g.i + 1], e.n[g.i + 2], e.n[g.i + 3], e.n[g.i + 4], e.n[g.i + 5], 0, clock_timestamp()
FROM (SELECT ('{' || nullif(current_setting('mq.entries', true), '') || '}')::bigint [] AS n OFFSET 0) AS e
CROSS JOIN LATERAL generate_series(1, cardinality(e.n), 6) AS g (i)
