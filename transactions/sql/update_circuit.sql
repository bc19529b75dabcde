-- Write the health of an endpoint after a call that changed it. A disabled endpoint is not changed, because only an
-- operator enables it.
UPDATE endpoint
SET
    state = %(state)s, failures = %(failures)s, open_until = %(open_until)s,
    failing_since = CASE WHEN %(failure)s::text IS NULL THEN NULL ELSE coalesce(failing_since, now()) END,
    last_failure = coalesce(%(failure)s, last_failure),
    last_failure_at = CASE WHEN %(failure)s IS NULL THEN last_failure_at ELSE now() END,
    last_success_at = CASE WHEN %(failure)s IS NULL THEN now() ELSE last_success_at END
WHERE id = %(id)s AND state <> 'disabled'
RETURNING state
