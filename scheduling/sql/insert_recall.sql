-- Note that an entry of a level's queue is recalled. The caller holds the lock of the scheduler's position, so the release
-- either has passed the entry already or will find this note.
INSERT INTO recall (queue_id, queue_offset)
VALUES (%(queue_id)s, %(queue_offset)s)
ON CONFLICT DO NOTHING
