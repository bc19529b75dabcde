-- In a source: set whether producers send notices: they do while the drain sleeps, and need not while it reads anyway.
-- Rows that were inserted before and are committed later are found by the drain's next look.
UPDATE mqbroker_outbox_state SET asleep = %(asleep)s
WHERE asleep <> %(asleep)s
