-- Renew the claim of half messages during their calls. A half message whose next check is not due at the end of this
-- claim has got an outcome or another claim. Its row is not changed, so a late renewal does no harm.
UPDATE half_message
SET next_check_at = now() + make_interval(secs => %(claim_seconds)s)
WHERE transaction_id = any(%(transaction_ids)s::uuid []) AND next_check_at = %(claimed_until)s
RETURNING next_check_at AS claimed_until
