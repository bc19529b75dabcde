"""Retries: after how long a failed message is offered again, and as what it is published."""
