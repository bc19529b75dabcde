-- In a source: have producers notify from now on, or leave it while rows come anyway. One that inserted before and
-- commits later is found by the next look.
UPDATE mqbroker_outbox_state SET asleep = %(asleep)s
WHERE asleep <> %(asleep)s
