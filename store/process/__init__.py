"""A process of the broker: its runtime with all parts, its budgets of bytes, and the pacing of large work."""
