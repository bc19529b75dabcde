"""Programs that use the broker through its client."""
