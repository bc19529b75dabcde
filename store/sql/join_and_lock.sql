-- Join the writers of the log and lock every queue that this transaction extends: the queues of the parameters, and the
-- queues in the register `mq.ending` as `topic:queue,…`. Queues are locked in sorted order, so that no two transactions
-- deadlock. Later statements read the offsets, and their snapshots see everything that earlier holders of the locks
-- have committed. The log is locked before the queues, as everywhere; without a queue only the outer call locks the
-- log. With `only_free` a queue that another session has locked is skipped and not waited for. The register `mq.queues`
-- passes on which queues were locked, each as one number (`topic << 32 | queue`); no other queue is extended. The
-- segment was read before the log was locked, so later statements check again that it is the open one.
-- Row: The open segment, and the queues that this transaction has locked.
-- Null: segment_id.
SELECT
    (SELECT s.id FROM segment AS s WHERE s.state = 'open') AS segment_id,
    set_config(
        'mq.queues',
        (array_agg(l.topic_id::bigint << 32 | l.queue_id) FILTER (WHERE l.held))::text,
        pg_advisory_xact_lock_shared(%(log_lock)s::bigint) IS NOT NULL
    ) AS locked_queues
FROM (
    SELECT
        w.topic_id, w.queue_id,
        CASE
            WHEN (SELECT pg_advisory_xact_lock_shared(%(log_lock)s::bigint)) IS NULL THEN false
            WHEN %(only_free)s::boolean THEN pg_try_advisory_xact_lock(w.topic_id, w.queue_id)
            ELSE pg_advisory_xact_lock(w.topic_id, w.queue_id) IS NOT NULL
        END AS held
    FROM (
        SELECT g.topic_id, g.queue_id
        FROM unnest(%(locked_topic_id)b::integer [], %(locked_queue_id)b::integer []) AS g (topic_id, queue_id)
        UNION
        SELECT split_part(e.named, ':', 1)::integer, split_part(e.named, ':', 2)::integer
        FROM string_to_table(nullif(current_setting('mq.ending', true), ''), ',') AS e (named)
        ORDER BY topic_id, queue_id
    ) AS w
    OFFSET 0
) AS l
