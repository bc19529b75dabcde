-- Note that retention drops a segment that no export holds whole, because all segments take more than they may.
UPDATE segment
SET unexported_at = now()
WHERE id = %(segment_id)s AND unexported_at IS NULL
