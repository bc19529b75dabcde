"""How a process writes: what it accepts, pipelined batches of one round trip, the stepwise writer, and the notices."""
