"""What is seen of the broker as a whole: statistics, metrics, and the trace of a message."""
