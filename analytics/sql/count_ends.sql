-- Count the operations of a closed range, and how many of them are ends of transactions: only ends are in an export.
SELECT count(*) AS there, count(*) FILTER (WHERE decision IN ('COMMIT', 'ROLLBACK')) AS counted
FROM operation
WHERE segment_id = %(segment_id)s AND operation_id BETWEEN %(first)s AND %(last)s
