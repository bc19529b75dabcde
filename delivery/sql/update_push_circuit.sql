-- Record the health of a subscription after a call. A failure disables the subscription when failing_since is five days
-- ago by the database's clock; each success clears failing_since.
UPDATE subscription
SET
    state = CASE WHEN counted.given_up THEN 'disabled' ELSE %(state)s END,
    failures = %(failures)s,
    open_until = CASE WHEN NOT counted.given_up THEN %(open_until)s::timestamptz END,
    failing_since = CASE WHEN %(failure)s::text IS NULL THEN NULL ELSE coalesce(failing_since, now()) END,
    last_failure = coalesce(%(failure)s, last_failure),
    last_failure_at = CASE WHEN %(failure)s::text IS NULL THEN last_failure_at ELSE now() END,
    last_success_at = CASE WHEN %(failure)s::text IS NULL THEN now() ELSE last_success_at END
FROM (
    SELECT
        s.id,
        %(failure)s::text IS NOT NULL AND coalesce(s.failing_since <= now() - interval '5 days', false) AS given_up
    FROM subscription AS s
    WHERE s.id = %(id)s
    FOR UPDATE
) AS counted
WHERE subscription.id = counted.id AND subscription.state <> 'disabled'
RETURNING subscription.state
