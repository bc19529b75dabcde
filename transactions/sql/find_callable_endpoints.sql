-- Find the endpoints of a group that may be called now, by the database's clock.
-- Row: An endpoint that may be called at the database's time `now`; `previous_secret` only while it still signs.
-- Null: previous_secret, open_until.
SELECT
    id, url, max_batch, timeout_seconds, concurrency, secret,
    CASE WHEN rotated_at > now() - make_interval(hours => %(rotation_hours)s::integer) THEN previous_secret END AS previous_secret,
    state, failures, open_until, now() AS now
FROM endpoint
WHERE group_id = %(group_id)s AND state <> 'disabled' AND coalesce(open_until <= now(), true)
ORDER BY id
