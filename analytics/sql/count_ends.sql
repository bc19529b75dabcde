-- The transactions that were decided in a closed range; the rest of the operations is history.
SELECT count(*)
FROM operation
WHERE
    segment_id = %(segment_id)s AND operation_id BETWEEN %(first)s AND %(last)s
    AND decision IN ('COMMIT', 'ROLLBACK')
