-- Recall a timer: delete its row, so that the message is never released. Without a row, the
-- message was released, or recalled before.
DELETE FROM timer
WHERE id = %(id)s::uuid AND message_id = %(message_id)s::uuid
RETURNING id
