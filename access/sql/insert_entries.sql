-- Record who changed what, in the transaction of the change: there is no change without its entry, and no entry without
-- its change. No other statement writes to the table: a trigger refuses to change or delete a row.
INSERT INTO audit_entry (
    at, author_kind, author, action, target, reason, before, after, result, detail, request_id, action_id
)
SELECT
    clock_timestamp(), e.author_kind, e.author, e.action, e.target, e.reason, e.before::jsonb, e.after::jsonb, e.result,
    e.detail, e.request_id, e.action_id
FROM unnest(
    %(author_kind)b::text [], %(author)b::text [], %(action)b::text [], %(target)b::text [], %(reason)b::text [],
    %(before)b::text [], %(after)b::text [], %(result)b::text [], %(detail)b::text [], %(request_id)b::text [],
    %(action_id)b::uuid []
) AS e (author_kind, author, action, target, reason, before, after, result, detail, request_id, action_id)
