"""What a begin and an end are written with: the pipelined batch, the rule of the immunity, and the limits."""
