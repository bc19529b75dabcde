-- Claim the only probe of an endpoint whose open time is over. If several workers try, only one of them gets the probe.
UPDATE endpoint
SET state = 'half_open', open_until = now() + make_interval(secs => %(claim_seconds)s)
WHERE id = %(id)s AND state IN ('open', 'half_open') AND open_until <= now()
RETURNING id
