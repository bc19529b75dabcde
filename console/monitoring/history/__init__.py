"""The history: numbers of the broker by the minute, kept for days, for the console's charts."""
