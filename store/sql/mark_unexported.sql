-- Note that retention drops a segment that no export holds whole, because all segments together take more disk space
-- than allowed.
UPDATE segment
SET unexported_at = now()
WHERE id = %(segment_id)s AND unexported_at IS NULL
