-- Which of these segments retention has not dropped meanwhile.
SELECT id
FROM segment
WHERE id = any(%(segment_ids)s) AND state <> 'dropped'
