-- Find the lists of exports as the broker noted them when they were finished: one of each folder, the latest; none of an export
-- by a role that only reads.
-- Row: The list of an export's files, as it was written to a folder: its moment, and its SHA-256.
SELECT e.target, e.taken_at, e.checksum
FROM export AS e
WHERE e.checksum IS NOT NULL
