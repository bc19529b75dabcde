-- Add the next segment, whose partitions are there: it may be opened from now on. Another process may have added it.
INSERT INTO segment (id, state)
VALUES (%(segment_id)s, 'ready')
ON CONFLICT (id) DO NOTHING
