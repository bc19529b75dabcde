"""Check-back: asks producers about undecided halves, by webhook or by polling, and applies the answers."""
