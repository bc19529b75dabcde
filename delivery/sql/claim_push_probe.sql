-- Claim the one probe of a subscription whose open time is over: only one of several workers gets a row from the
-- update.
UPDATE subscription
SET state = 'half_open', open_until = now() + make_interval(secs => %(claim_seconds)s)
WHERE id = %(id)s AND state IN ('open', 'half_open') AND open_until <= now()
RETURNING id
