-- Find the requests with a `repeatable` id that is already stored, and the requests of forwards in the register
-- `mq.left_out`, and write a number for each request into the register `mq.skipped`: -1 for a found request; for any
-- other request, how many left out messages come before it in its queue. The locks of the queues are enough: if another
-- process stores an id after this snapshot, the statement that appends fails, and the batch is sent again.
SELECT
    set_config(
        'mq.skipped',
        coalesce(array_agg(CASE WHEN r.is_stored THEN -1 ELSE r.left_out END ORDER BY r.number)::text, ''),
        true
    ) AS skipped
FROM (
    SELECT
        q.number, q.is_stored,
        sum(CASE WHEN q.is_stored THEN q.messages ELSE 0 END) OVER (PARTITION BY q.queue ORDER BY q.number) AS left_out
    FROM (
        SELECT
            g.number, g.queue, g.messages,
            g.number = any(array(
                SELECT k.request
                FROM unnest(%(repeatable)b::uuid [], %(repeatable_request)b::integer []) AS k (message_id, request)
                INNER JOIN commit_log AS l ON k.message_id = l.message_id
                WHERE l.message_id = any(%(repeatable)b::uuid [])
            ))
            OR coalesce(
                g.forward = any((SELECT nullif(current_setting('mq.left_out', true), '')::integer [])::integer []), false
            ) AS is_stored
        FROM unnest(
            %(request_queue)b::integer [], %(request_messages)b::integer [], %(request_forward)b::integer []
        ) WITH ORDINALITY AS g (queue, messages, forward, number)
    ) AS q
) AS r
