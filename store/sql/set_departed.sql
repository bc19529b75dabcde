-- Note the topics, and the queues of the broker's own topics, that have left this database for another cell. Only
-- during a fence, so that no earlier session continues without knowing them.
UPDATE cell_identity
SET departed = %(topics)s::integer [], departed_queues = %(queues)s::bigint []
