-- Note the topics, and the queues of the broker's own topics, that this database had and that are another cell's. Done behind
-- a fence only: no session of before it lives on.
UPDATE cell_identity
SET departed = %(topics)s::integer [], departed_queues = %(queues)s::bigint []
