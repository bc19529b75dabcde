-- Record dead letters as redriven, in the transaction that publishes them, so that no letter is sent twice or lost.
INSERT INTO redrive (segment_id, group_id, queue_offset, redriven_at)
SELECT %(segment_id)s, r.group_id, r.queue_offset, now()
FROM unnest(%(group_id)b::integer [], %(queue_offset)b::bigint []) AS r (group_id, queue_offset)
