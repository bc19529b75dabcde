-- In a source: have new rows go to the other partition of the table, and give the one that they went to.
UPDATE mqbroker_outbox_state SET slot = (1 - slot)::smallint
RETURNING (1 - slot)::integer AS slot
