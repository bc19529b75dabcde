-- Note an export that is complete in its folder, with its manifest in place. The table has one row for each folder, for
-- its latest export, even if an earlier export held more: the earlier files are gone.
INSERT INTO export (target, taken_at, finished_at, segment_id, log_offset, rows, checksum)
VALUES (
    %(target)s, %(taken_at)s::timestamptz, clock_timestamp(), %(segment_id)s, %(log_offset)s, %(rows)s::jsonb,
    %(checksum)s
)
ON CONFLICT (target) DO UPDATE
SET
    taken_at = excluded.taken_at, finished_at = excluded.finished_at, segment_id = excluded.segment_id,
    log_offset = excluded.log_offset, rows = excluded.rows, checksum = excluded.checksum
