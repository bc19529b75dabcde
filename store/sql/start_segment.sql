-- Open the next segment in the transaction that closed the one before: at no moment is there none, or are there two.
UPDATE segment
SET state = 'open', opened_at = clock_timestamp()
WHERE id = %(segment_id)s AND state = 'ready'
