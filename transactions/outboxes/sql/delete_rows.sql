-- In a source: delete rows whose messages are stored, where others of the same turn were set apart.
DELETE FROM mqbroker_outbox AS o
USING unnest(%(slots)s::smallint[], %(seqs)s::bigint[]) AS t (slot, seq)
WHERE o.slot = t.slot AND o.seq = t.seq
