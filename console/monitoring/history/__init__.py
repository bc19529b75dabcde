"""The history: figures of the broker by the minute, kept for days, of which the console draws its charts."""
