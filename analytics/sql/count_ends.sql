-- The rows of a closed range of operations, and how many of them are exported: those that decided a transaction.
SELECT count(*) AS there, count(*) FILTER (WHERE decision IN ('COMMIT', 'ROLLBACK')) AS counted
FROM operation
WHERE segment_id = %(segment_id)s AND operation_id BETWEEN %(first)s AND %(last)s
