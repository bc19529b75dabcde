-- List the outboxes that are drained.
SELECT
    o.id,
    o.name,
    o.source_url AS url,
    o.schema,
    o.topics
FROM outbox AS o
WHERE NOT o.paused
ORDER BY o.name
