-- Enter stored messages at the offsets that the statement before computed under the locks of their queues, and handed on
-- in the register `mq.entries` as `topic queue offset segment log_offset tags_code,…`.
INSERT INTO consume_queue (
    segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
)
SELECT %(segment_id)s, e.n[1], e.n[2], e.n[3], e.n[4], e.n[5], e.n[6], 0, clock_timestamp()
FROM (
    SELECT string_to_array(given.entry, ' ')::bigint [] AS n
    FROM string_to_table(nullif(current_setting('mq.entries', true), ''), ',') AS given (entry)
) AS e
