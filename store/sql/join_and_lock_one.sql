-- Join the writers of the log and lock the only queue that this transaction extends, as `join_and_lock` does for
-- several queues; the plan of `join_and_lock` takes 9 us more. The log is locked before the queue, because columns are
-- computed in their order.
-- Row: The open segment, and the one queue that this transaction has locked.
-- Null: segment_id.
SELECT
    (SELECT s.id FROM segment AS s WHERE s.state = 'open') AS segment_id,
    pg_advisory_xact_lock_shared(%(log_lock)b::bigint)::text AS joined,
    set_config(
        'mq.queues',
        '{' || (%(topic_id)b::integer::bigint << 32 | %(queue_id)b::integer) || '}',
        pg_advisory_xact_lock(%(topic_id)b::integer, %(queue_id)b::integer) IS NOT NULL
    ) AS locked_queues
