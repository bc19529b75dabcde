"""Check-back: asks producers about undecided half messages, by webhook or polling, and applies the answers."""
