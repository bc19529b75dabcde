-- Read the clock of this server. Sessions that begin after this have a later time of begin.
SELECT clock_timestamp() AS now
