-- Hold producer groups while transactions are begun in them, and return the groups that exist. A delete of a group
-- either waits for the end of this transaction and then finds its half messages, or came first, and then the group is
-- not returned. With key share, begins do not wait for each other or for a change of other fields. Locked in the order
-- of ids, so that no two transactions deadlock.
SELECT g.id
FROM producer_group AS g
WHERE g.id = any(%(group_ids)s::integer [])
ORDER BY g.id
FOR KEY SHARE
