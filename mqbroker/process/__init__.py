"""What a process of the broker starts, keeps running and ends: its runtime, its background work, its sealed secrets."""
