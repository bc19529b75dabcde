-- Add the next segment, whose partitions exist, so that it may be opened. Another process may have added it already.
INSERT INTO segment (id, state)
VALUES (%(segment_id)s, 'ready')
ON CONFLICT (id) DO NOTHING
