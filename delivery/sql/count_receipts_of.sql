-- Count the deliveries of some topics. Reads only.
SELECT count(*) AS receipts
FROM receipt
WHERE origin_topic_id = any(%(topics)s::integer [])
