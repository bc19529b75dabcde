-- Create a producer group, unless another process has just created it. The caller reads the row afterwards in both
-- cases.
INSERT INTO producer_group (name, reject_transaction_message, checks_paused, api_keys)
VALUES (%(name)s, false, false, %(api_keys)s)
ON CONFLICT (name) DO NOTHING
