-- In a source: read the first waiting row, and take the turn to drain the outbox, unless another session has the turn
-- or there is nothing to do. The turn is the lock of a row, which only the owner and the broker's role may lock; any
-- role could take an advisory lock. The turn ends with the transaction: a frozen process holds it until its session is
-- ended as idle. A transaction that does not take the turn writes nothing, so its commit does not wait for the disk.
SELECT
    f.asleep,
    f.slot,
    f.seq,
    coalesce(t.is_mine, false) AS is_mine
FROM (
    SELECT
        coalesce(pg_sequence_last_value(to_regclass('mqbroker_outbox_awake')) <> 2, s.asleep) AS asleep,
        o.slot,
        o.seq
    FROM mqbroker_outbox_state AS s
    LEFT JOIN LATERAL (SELECT w.slot, w.seq FROM mqbroker_outbox AS w ORDER BY w.seq LIMIT 1) AS o ON true
    LIMIT 1
) AS f
LEFT JOIN LATERAL (
    SELECT true AS is_mine
    FROM mqbroker_outbox_state AS s
    WHERE f.seq IS NOT NULL OR NOT f.asleep
    LIMIT 1
    FOR UPDATE SKIP LOCKED
) AS t ON true
