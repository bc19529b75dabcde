-- In a source: truncate a partition to give its disk back, unless it has rows or a transaction uses it.
SELECT mqbroker_outbox_clear(%(slot)s::smallint) AS is_cleared
