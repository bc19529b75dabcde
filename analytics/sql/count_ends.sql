-- Count the operations of a closed range, and those among them that an export holds: the ends of transactions.
SELECT count(*) AS there, count(*) FILTER (WHERE decision IN ('COMMIT', 'ROLLBACK')) AS counted
FROM operation
WHERE segment_id = %(segment_id)s AND operation_id BETWEEN %(first)s AND %(last)s
