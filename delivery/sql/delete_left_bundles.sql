-- Delete bundles of deleted groups, at most max_bundles. It waits for a transaction that gives deliveries of a bundle
-- receipts, so that the delete of the receipts sees these receipts.
DELETE FROM bundle AS b
WHERE b.ctid = any(array(
    SELECT g.ctid
    FROM bundle AS g
    WHERE g.group_id = any(%(group_ids)s::integer [])
    ORDER BY g.group_id, g.topic_id, g.queue_id, g.first_offset, g.nonce
    LIMIT %(max_bundles)s
    FOR UPDATE
))
RETURNING b.group_id
