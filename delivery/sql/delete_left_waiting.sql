-- Delete the entries that were read ahead for deleted groups or from deleted topics.
DELETE FROM waiting AS w
WHERE w.group_id = any(%(group_ids)s::integer []) OR NOT EXISTS (SELECT 1 FROM topic AS t WHERE t.id = w.topic_id)
