-- Join the writers of the log, for a batch that extends no queue, as `join_and_lock` does with queues; the plan of
-- `join_and_lock` takes 9 us more. The segment was read before the log was locked, so later statements check again that
-- it is the open one.
-- Row: The open segment, for a batch that locks no queue.
-- Null: segment_id.
SELECT
    (SELECT s.id FROM segment AS s WHERE s.state = 'open') AS segment_id,
    pg_advisory_xact_lock_shared(%(log_lock)b::bigint)::text AS joined
