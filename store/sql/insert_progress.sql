-- Record the next offsets of readers. Each move follows the move that was read under the reader's lock. If the move
-- exists already, another process has moved without the lock; then the statement fails instead of losing or repeating
-- messages.
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT %(segment_id)s, p.reader_id, p.topic_id, p.queue_id, p.move, p.next_offset, now()
FROM unnest(
    %(reader_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(move)b::bigint [],
    %(next_offset)b::bigint []
) AS p (reader_id, topic_id, queue_id, move, next_offset)
