-- Hold producer groups while transactions are begun in them, and return those that exist: a delete of one waits for the
-- end of this transaction and then finds its half messages, or it was faster and the group is not returned. Key share:
-- begins do not wait for each other, nor for a change of other fields. Locked in id order, so that no two deadlock.
SELECT g.id
FROM producer_group AS g
WHERE g.id = any(%(group_ids)s::integer [])
ORDER BY g.id
FOR KEY SHARE
