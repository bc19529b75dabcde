-- Count the entries of closed ranges of a segment's queues; an export holds all of them.
SELECT count(*) AS there, count(*) AS counted
FROM consume_queue AS c
INNER JOIN unnest(
    %(topic_ids)s::integer [], %(queue_ids)s::integer [], %(firsts)s::bigint [], %(lasts)s::bigint []
) AS closed (topic_id, queue_id, first_offset, last_offset)
    ON c.topic_id = closed.topic_id AND c.queue_id = closed.queue_id
WHERE c.segment_id = %(segment_id)s AND c.queue_offset BETWEEN closed.first_offset AND closed.last_offset
