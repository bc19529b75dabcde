-- Find the first offset of each queue from a time on; a queue without an entry since then is left out. It reads the
-- times of all entries, but only once at the start of a stream; an index on the time would slow every write down.
-- Row: The first offset of a queue from a time on.
SELECT c.topic_id, c.queue_id, min(c.queue_offset) AS queue_offset
FROM consume_queue AS c
WHERE c.entered_at >= %(since)s
GROUP BY c.topic_id, c.queue_id
