-- Delete the recalls of entries that are being released. The caller holds the lock of the scheduler's progress.
DELETE FROM recall
WHERE queue_id = %(queue_id)s AND queue_offset BETWEEN %(from_offset)s AND %(to_offset)s
RETURNING queue_offset
