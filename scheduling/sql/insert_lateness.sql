-- Add counts of releases by their lateness, in the open segment. Not written in the transaction of a release. At the
-- instant of a roll a row may go to the segment that has just closed; it is also read there.
INSERT INTO lateness (segment_id, id, noted_at, queue_id, counts)
SELECT s.id, l.id, now(), l.queue_id, l.counts::integer []
FROM unnest(%(id)s::uuid [], %(queue_id)s::integer [], %(counts)s::text []) AS l (id, queue_id, counts)
CROSS JOIN segment AS s
WHERE s.state = 'open'
