-- In a source: take the turn, as `take_turn` does, for what is to be done without a row that waits.
SELECT s.slot
FROM mqbroker_outbox_state AS s
LIMIT 1
FOR UPDATE SKIP LOCKED
