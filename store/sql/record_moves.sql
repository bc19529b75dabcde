-- Record the next offsets of readers, which the statement before has computed under the readers' locks and put into the
-- register `mq.moves` as `reader topic queue move next_offset,…`. If a move exists already, it was made without the
-- lock; then the statement fails, as insert_progress does, instead of losing or repeating messages.
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT %(segment_id)s, m.n[1], m.n[2], m.n[3], m.n[4], m.n[5], now()
FROM (
    SELECT string_to_array(given.move, ' ')::bigint [] AS n
    FROM string_to_table(nullif(current_setting('mq.moves', true), ''), ',') AS given (move)
) AS m
