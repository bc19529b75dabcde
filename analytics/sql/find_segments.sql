-- The segments that hold something or may, and the time of the snapshot. Those that are merely ready are empty.
SELECT id, state, now() AS taken_at
FROM segment
WHERE state IN ('open', 'closed')
ORDER BY id
