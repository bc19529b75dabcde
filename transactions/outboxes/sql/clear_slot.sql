-- In a source: give the disk of a partition back, unless it holds rows or a transaction uses it.
SELECT mqbroker_outbox_clear(%(slot)s::smallint) AS is_cleared
