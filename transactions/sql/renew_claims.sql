-- Prolong the claim of half messages that are being asked about. A half whose next check is no longer the claim's end has
-- an outcome, or another claim: it is left as it is, so a late renewal takes nothing back.
UPDATE half_message
SET next_check_at = now() + make_interval(secs => %(claim_seconds)s)
WHERE transaction_id = any(%(transaction_ids)s::uuid []) AND next_check_at = %(claimed_until)s
RETURNING next_check_at AS claimed_until
