-- In a source: take the turn to drain its outbox, unless another session has it. The turn is the lock of a row that only
-- the owner and the broker's role may lock, where any role may take an advisory lock. It ends with the transaction: a
-- process that is frozen holds it until its session is ended as idle.
SELECT s.slot
FROM mqbroker_outbox_state AS s
FOR UPDATE SKIP LOCKED
