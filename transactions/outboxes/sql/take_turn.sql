-- In a source: the first row that waits, and the turn to drain its outbox, unless another session has the turn or nothing is
-- to be done. The turn is the lock of a row that only the owner and the broker's role may lock, where any role may take an
-- advisory lock. It ends with the transaction: a process that is frozen holds it until its session is ended as idle. A
-- transaction that takes no turn writes nothing, and its commit waits for no disk.
SELECT
    f.asleep,
    f.slot,
    f.seq,
    coalesce(t.is_mine, false) AS is_mine
FROM (
    SELECT
        s.asleep,
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
