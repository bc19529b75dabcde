-- In a source: take the turn as `take_turn` does, for work that is done while no row waits.
SELECT s.slot
FROM mqbroker_outbox_state AS s
LIMIT 1
FOR UPDATE SKIP LOCKED
