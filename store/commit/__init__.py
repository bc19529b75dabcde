"""How a process writes: pipelined batches, one round trip each, and the stepwise writer for all that needs more."""
