-- Delete what was read ahead for groups that are gone, or of topics that are gone.
DELETE FROM waiting AS w
WHERE w.group_id = any(%(group_ids)s::integer []) OR NOT EXISTS (SELECT 1 FROM topic AS t WHERE t.id = w.topic_id)
