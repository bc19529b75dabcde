-- Create a producer group unless another process just did; the caller reads it afterwards either way.
INSERT INTO producer_group (name, reject_transaction_message, checks_paused)
VALUES (%(name)s, false, false)
ON CONFLICT (name) DO NOTHING
