-- In a source: delete rows whose messages are stored, after other rows of the same turn were refused or had to wait.
DELETE FROM mqbroker_outbox AS o
USING unnest(%(slots)s::smallint[], %(seqs)s::bigint[]) AS t (slot, seq)
WHERE o.slot = t.slot AND o.seq = t.seq
