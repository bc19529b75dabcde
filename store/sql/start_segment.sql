-- Open the next segment, in the transaction that closes the one before, so that exactly one segment is open at any
-- time.
UPDATE segment
SET state = 'open', opened_at = clock_timestamp()
WHERE id = %(segment_id)s AND state = 'ready'
