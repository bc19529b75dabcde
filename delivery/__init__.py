"""The consumer's side: receive, ack, retry, dead letters and push."""
