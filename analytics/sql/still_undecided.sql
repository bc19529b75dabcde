-- Find the transactions whose messages were stored up to a log offset and that are still undecided: an export that goes
-- so far has read them as undecided. Discarded ones are among them.
SELECT transaction_id::text
FROM half_message
WHERE log_offset <= %(log_offset)s
ORDER BY transaction_id
