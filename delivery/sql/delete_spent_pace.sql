-- Delete the rates of values whose token buckets are full again, at most max_rows: a value without a row has a full bucket.
-- A row that a handout has locked is skipped.
DELETE FROM pace
WHERE ctid = any(array(SELECT p.ctid FROM pace AS p WHERE p.due_at < now() LIMIT %(max_rows)s FOR UPDATE SKIP LOCKED))
