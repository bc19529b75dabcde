-- In a source: make new rows go to the other partition of the table, and return the partition to which new rows went
-- until now.
UPDATE mqbroker_outbox_state SET slot = (1 - slot)::smallint
RETURNING (1 - slot)::integer AS slot
