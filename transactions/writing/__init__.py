"""What a begin and an end are written with: pipelined or stepwise, the rule of the immunity, and the limits."""
