-- Find the lists of exports that the broker has noted, each when its export was finished: the latest list of each
-- folder. An export by a role that only reads has no list here.
-- Row: The list of an export's files, as it was written to a folder: its moment, and its SHA-256.
SELECT e.target, e.taken_at, e.checksum
FROM export AS e
WHERE e.checksum IS NOT NULL
