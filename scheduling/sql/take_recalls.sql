-- Take the notes of recalled entries among those that are being released. The caller holds the lock of the position.
DELETE FROM recall
WHERE queue_id = %(queue_id)s AND queue_offset BETWEEN %(from_offset)s AND %(to_offset)s
RETURNING queue_offset
