"""Retries: what becomes of a delivery without an ack: its nack or expiry, its order, when it is offered again."""
