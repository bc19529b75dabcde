"""The consumer's side: receive and pull, receipts, retries, dead letters, ordered groups and push."""
