-- Read the clock of this server: sessions that begin from now on began later.
SELECT clock_timestamp() AS now
