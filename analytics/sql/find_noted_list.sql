-- Find the checksums of the lists that exports of one moment had when they were finished; none where their folders were
-- exported to again since, or by a role that only reads.
SELECT e.checksum
FROM export AS e
WHERE e.taken_at = %(taken_at)s::timestamptz AND e.checksum IS NOT NULL
