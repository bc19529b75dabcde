"""Retries: deliveries without an ack: nacks, expiry, order in ordered groups, and the time of the next delivery."""
