"""Push: receives for a subscription, POSTs to its server and applies the answer."""
