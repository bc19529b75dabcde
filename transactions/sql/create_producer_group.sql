-- Create a producer group unless another process just did; the caller reads it afterwards either way.
INSERT INTO producer_group (name, reject_transaction_message, checks_paused, api_keys)
VALUES (%(name)s, false, false, %(api_keys)s)
ON CONFLICT (name) DO NOTHING
