-- Keep counts of releases by their lateness, in the open segment. They are figures, written outside of the releases: in
-- the instant of a roll a few may go to the segment that just closed, where they are read all the same.
INSERT INTO lateness (segment_id, id, noted_at, queue_id, counts)
SELECT s.id, l.id, now(), l.queue_id, l.counts::integer []
FROM unnest(%(id)s::uuid [], %(queue_id)s::integer [], %(counts)s::text []) AS l (id, queue_id, counts)
CROSS JOIN segment AS s
WHERE s.state = 'open'
