-- Find the transactions whose messages were stored up to a log offset and that are still undecided: an export up to
-- this offset has read them as undecided. Discarded transactions are also returned.
SELECT transaction_id::text
FROM half_message
WHERE log_offset <= %(log_offset)s
ORDER BY transaction_id
