-- Recall a timer: this delete takes the message back. No row: it was released, or recalled before.
DELETE FROM timer
WHERE id = %(id)s::uuid AND message_id = %(message_id)s::uuid
RETURNING id
