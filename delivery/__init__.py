"""The consumer's side: receive, ack, retry and dead letters."""
